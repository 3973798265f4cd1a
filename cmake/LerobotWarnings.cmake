# lerobot::warnings, linked PRIVATE by every room, app and test: our own sources are held to it, third parties are not.
add_library(lerobot_warnings INTERFACE)
add_library(lerobot::warnings ALIAS lerobot_warnings)
target_compile_options(lerobot_warnings INTERFACE -Wall -Wextra -Wpedantic -Wshadow -Wconversion
  $<$<BOOL:${LEROBOT_WERROR}>:-Werror>
  # GCC 12 reports these inside inlined standard and torch code at -O1 and above.
  $<$<CXX_COMPILER_ID:GNU>:-Wno-maybe-uninitialized -Wno-dangling-pointer -Wno-array-bounds -Wno-stringop-overflow -Wno-restrict>)

# lerobot::torch, for the rooms that use tensors. -fPIC in libraries and programs alike lets both share one PCH.
add_library(lerobot_torch INTERFACE)
add_library(lerobot::torch ALIAS lerobot_torch)
target_link_libraries(lerobot_torch INTERFACE Torch::CPU)
set_target_properties(lerobot_torch PROPERTIES EXPORT_NAME torch)

# lerobot::base carries what every source needs, tensors or not.
add_library(lerobot_base INTERFACE)
add_library(lerobot::base ALIAS lerobot_base)
target_compile_features(lerobot_base INTERFACE cxx_std_20)
target_compile_options(lerobot_base INTERFACE $<BUILD_INTERFACE:-fPIC>)
set_target_properties(lerobot_base PROPERTIES EXPORT_NAME base)
if(LEROBOT_SANITIZE)
  target_compile_options(lerobot_base INTERFACE
    $<BUILD_INTERFACE:-fsanitize=${LEROBOT_SANITIZE}> $<BUILD_INTERFACE:-fno-omit-frame-pointer>)
  target_link_options(lerobot_base INTERFACE $<BUILD_INTERFACE:-fsanitize=${LEROBOT_SANITIZE}>)
endif()
