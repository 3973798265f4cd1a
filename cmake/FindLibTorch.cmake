# Finds LibTorch in a PyPI wheel or a stand-alone archive, of either C++ ABI, without the CUDA toolkit.
#
# Looked at, in this order: LIBTORCH (variable, then environment), every CMAKE_PREFIX_PATH entry, the folder that
# scripts/setup fills. Each may be the torch folder itself or a prefix above it.
#
# Makes    Torch::CPU  libtorch_cpu + libc10, headers as SYSTEM
#          Torch::CUDA the same plus libtorch_cuda, NCCL; only where LEROBOT_CUDA asks for it
# Sets     LibTorch_DIR_ROOT, LibTorch_VERSION, LEROBOT_HAS_CUDA, LEROBOT_CUDA_REASON
set(_torch_places)
if(LIBTORCH)
  list(APPEND _torch_places ${LIBTORCH})
endif()
if(DEFINED ENV{LIBTORCH})
  list(APPEND _torch_places $ENV{LIBTORCH})
endif()
list(APPEND _torch_places ${CMAKE_PREFIX_PATH})
file(GLOB _torch_deps "${LEROBOT_DEPS}/venv/lib/python3*/site-packages/torch")
list(APPEND _torch_places ${_torch_deps})

set(LibTorch_DIR_ROOT "")
foreach(_place IN LISTS _torch_places)
  file(GLOB _inside "${_place}" "${_place}/torch" "${_place}/libtorch" "${_place}/lib/python3*/site-packages/torch")
  foreach(_root IN LISTS _inside)
    if(NOT LibTorch_DIR_ROOT AND EXISTS "${_root}/include/ATen/core/Tensor.h" AND EXISTS "${_root}/lib/libtorch_cpu.so")
      set(LibTorch_DIR_ROOT "${_root}")
    endif()
  endforeach()
endforeach()
if(NOT LibTorch_DIR_ROOT)
  string(REPLACE ";" ", " _shown "${_torch_places}")
  message(FATAL_ERROR "lerobot: LibTorch was not found (looked in: ${_shown}). Run scripts/setup, or give its folder: "
                      "-DLIBTORCH=<folder with include/ and lib/libtorch_cpu.so> or -DCMAKE_PREFIX_PATH=<the same>.")
endif()

set(LibTorch_VERSION "")
foreach(_header torch/headeronly/version.h torch/csrc/api/include/torch/version.h)
  if(NOT LibTorch_VERSION AND EXISTS "${LibTorch_DIR_ROOT}/include/${_header}")
    file(READ "${LibTorch_DIR_ROOT}/include/${_header}" _torch_version)
    if(_torch_version MATCHES "TORCH_VERSION_MAJOR +([0-9]+).*TORCH_VERSION_MINOR +([0-9]+).*TORCH_VERSION_PATCH +([0-9]+)")
      set(LibTorch_VERSION "${CMAKE_MATCH_1}.${CMAKE_MATCH_2}.${CMAKE_MATCH_3}")
    endif()
  endif()
endforeach()

# The ABI is written into TorchConfig.cmake of every distribution; old stand-alone archives use the pre-C++11 one.
set(_torch_abi 1)
if(EXISTS "${LibTorch_DIR_ROOT}/share/cmake/Torch/TorchConfig.cmake")
  file(STRINGS "${LibTorch_DIR_ROOT}/share/cmake/Torch/TorchConfig.cmake" _abi_line REGEX "_GLIBCXX_USE_CXX11_ABI=")
  if(_abi_line MATCHES "_GLIBCXX_USE_CXX11_ABI=0")
    set(_torch_abi 0)
  endif()
endif()

if(NOT TARGET Torch::CPU)
  add_library(Torch::CPU INTERFACE IMPORTED GLOBAL)
  set_target_properties(Torch::CPU PROPERTIES
    INTERFACE_INCLUDE_DIRECTORIES
      "${LibTorch_DIR_ROOT}/include;${LibTorch_DIR_ROOT}/include/torch/csrc/api/include"
    INTERFACE_COMPILE_DEFINITIONS "USE_DISTRIBUTED;USE_C10D_GLOO;USE_RPC;USE_TENSORPIPE"
    INTERFACE_LINK_LIBRARIES "${LibTorch_DIR_ROOT}/lib/libtorch_cpu.so;${LibTorch_DIR_ROOT}/lib/libc10.so;Threads::Threads"
    INTERFACE_LINK_OPTIONS "-Wl,-rpath,${LibTorch_DIR_ROOT}/lib;-Wl,--allow-shlib-undefined")
  if(_torch_abi EQUAL 0)
    set_property(TARGET Torch::CPU APPEND PROPERTY INTERFACE_COMPILE_DEFINITIONS _GLIBCXX_USE_CXX11_ABI=0)
  endif()
endif()

# CUDA needs libtorch_cuda.so, the headers of the CUDA runtime, and NCCL. In wheels each lives in its own package.
set(LEROBOT_HAS_CUDA OFF)
set(LEROBOT_CUDA_REASON "switched off by LEROBOT_CUDA=OFF")
if(NOT LEROBOT_CUDA STREQUAL "OFF")
  get_filename_component(_site "${LibTorch_DIR_ROOT}" DIRECTORY)
  find_path(LEROBOT_NCCL_INCLUDE nccl.h PATHS "${_site}/nvidia/nccl/include" /usr/include /usr/local/cuda/include)
  find_path(LEROBOT_CUDART_INCLUDE cuda_runtime_api.h
    PATHS "${_site}/nvidia/cu13/include" "${_site}/nvidia/cuda_runtime/include" /usr/local/cuda/include NO_DEFAULT_PATH)
  find_file(LEROBOT_NCCL_LIBRARY NAMES libnccl.so.2 PATHS "${_site}/nvidia/nccl/lib" /usr/lib/x86_64-linux-gnu NO_DEFAULT_PATH)
  find_file(LEROBOT_CUDA_DRIVER NAMES libcuda.so.1 PATHS /usr/lib/x86_64-linux-gnu /usr/local/nvidia/lib64 /usr/lib64
    NO_DEFAULT_PATH)
  if(NOT EXISTS "${LibTorch_DIR_ROOT}/lib/libtorch_cuda.so")
    set(LEROBOT_CUDA_REASON "this LibTorch has no libtorch_cuda.so")
  elseif(NOT LEROBOT_CUDART_INCLUDE)
    set(LEROBOT_CUDA_REASON "no CUDA runtime headers (pip package nvidia-cuda-runtime, or the toolkit)")
  elseif(NOT LEROBOT_NCCL_INCLUDE OR NOT LEROBOT_NCCL_LIBRARY)
    set(LEROBOT_CUDA_REASON "no NCCL (pip package nvidia-nccl: scripts/setup --full)")
  elseif(LEROBOT_CUDA STREQUAL "AUTO" AND NOT LEROBOT_CUDA_DRIVER)
    set(LEROBOT_CUDA_REASON "no NVIDIA driver on this machine; LEROBOT_CUDA=ON builds it all the same")
  else()
    set(LEROBOT_HAS_CUDA ON)
    set(LEROBOT_CUDA_REASON "")
  endif()
  if(LEROBOT_CUDA STREQUAL "ON" AND NOT LEROBOT_HAS_CUDA)
    message(FATAL_ERROR "lerobot: LEROBOT_CUDA=ON, but ${LEROBOT_CUDA_REASON}.")
  endif()
endif()
if(LEROBOT_HAS_CUDA AND NOT TARGET Torch::CUDA)
  file(GLOB _cuda_libs "${_site}/nvidia/*/lib")
  list(TRANSFORM _cuda_libs PREPEND "-Wl,-rpath," OUTPUT_VARIABLE _cuda_rpath)
  add_library(Torch::CUDA INTERFACE IMPORTED GLOBAL)
  set_target_properties(Torch::CUDA PROPERTIES
    INTERFACE_INCLUDE_DIRECTORIES "${LEROBOT_NCCL_INCLUDE};${LEROBOT_CUDART_INCLUDE}"
    INTERFACE_COMPILE_DEFINITIONS "USE_C10D_NCCL"
    INTERFACE_LINK_LIBRARIES "Torch::CPU"
    INTERFACE_LINK_OPTIONS
      "-Wl,--no-as-needed;${LibTorch_DIR_ROOT}/lib/libtorch_cuda.so;${LibTorch_DIR_ROOT}/lib/libc10_cuda.so;${LEROBOT_NCCL_LIBRARY};${_cuda_rpath}")
endif()

include(FindPackageHandleStandardArgs)
find_package_handle_standard_args(LibTorch REQUIRED_VARS LibTorch_DIR_ROOT VERSION_VAR LibTorch_VERSION)
