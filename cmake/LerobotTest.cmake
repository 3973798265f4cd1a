# lerobot_add_unit_tests(<room> SOURCES <cpp>... [ROOMS <room>...] [LINK <target>...] [PCH] [TIMEOUT <s>])
#   one program tests/unit/<room>, one ctest entry per test case group: unit.<room>.<source stem>
# lerobot_add_mpi_test(<source> RANKS <n>... ROOMS <room>... [PCH] [TIMEOUT <s>])
#   one ctest entry per rank count: distributed.<room>.<stem>.n<ranks>
# Tests find their files through LEROBOT_TEST_DATA (tests/data) and programs through LEROBOT_BIN.
set(LEROBOT_MPIEXEC_FLAGS --oversubscribe --allow-run-as-root --bind-to none --mca btl_vader_single_copy_mechanism none)
set(LEROBOT_TEST_DATA ${PROJECT_SOURCE_DIR}/tests/data)

function(lerobot_test_common target)
  target_link_libraries(${target} PRIVATE lerobot::base Catch2::Catch2 $<BUILD_INTERFACE:lerobot::warnings>)
  target_include_directories(${target} PRIVATE ${PROJECT_SOURCE_DIR}/tests)
  target_compile_definitions(${target} PRIVATE LEROBOT_TEST_DATA="${LEROBOT_TEST_DATA}"
    LEROBOT_BIN="${CMAKE_BINARY_DIR}/bin" LEROBOT_SOURCE_DIR="${PROJECT_SOURCE_DIR}")
  set_target_properties(${target} PROPERTIES RUNTIME_OUTPUT_DIRECTORY ${CMAKE_BINARY_DIR}/tests)
endfunction()

function(lerobot_add_unit_tests room)
  cmake_parse_arguments(T "PCH" "TIMEOUT" "SOURCES;ROOMS;LINK" ${ARGN})
  if(NOT T_TIMEOUT)
    set(T_TIMEOUT 120)
  endif()
  set(target unit_${room})
  add_executable(${target} ${T_SOURCES} $<TARGET_OBJECTS:lerobot_unit_main>)
  lerobot_test_common(${target})
  list(TRANSFORM T_ROOMS PREPEND lerobot::)
  target_link_libraries(${target} PRIVATE lerobot::${room} ${T_ROOMS} ${T_LINK})
  if(T_PCH)
    lerobot_use_pch(${target})
  endif()
  # Catch2 2 has no file filter; every source tags its cases with [<stem without _test>].
  foreach(source IN LISTS T_SOURCES)
    get_filename_component(stem ${source} NAME_WE)
    string(REGEX REPLACE "_test$" "" tag ${stem})
    add_test(NAME unit.${room}.${tag} COMMAND ${target} "[${tag}]")
    set_tests_properties(unit.${room}.${tag} PROPERTIES LABELS "unit;${room}" TIMEOUT ${T_TIMEOUT}
      ENVIRONMENT "OMP_NUM_THREADS=1")
  endforeach()
endfunction()

function(lerobot_add_mpi_test source)
  cmake_parse_arguments(T "PCH" "TIMEOUT" "RANKS;ROOMS;LINK" ${ARGN})
  if(NOT T_TIMEOUT)
    set(T_TIMEOUT 120)
  endif()
  get_filename_component(stem ${source} NAME_WE)
  get_filename_component(room ${CMAKE_CURRENT_SOURCE_DIR} NAME)
  set(target distributed_${room}_${stem})
  add_executable(${target} ${source} $<TARGET_OBJECTS:lerobot_mpi_main>)
  lerobot_test_common(${target})
  list(TRANSFORM T_ROOMS PREPEND lerobot::)
  target_link_libraries(${target} PRIVATE ${T_ROOMS} ${T_LINK} MPI::MPI_CXX)
  if(T_PCH)
    lerobot_use_pch(${target})
  endif()
  string(REGEX REPLACE "_test$" "" stem ${stem})
  foreach(n IN LISTS T_RANKS)
    lerobot_add_mpi_command(distributed.${room}.${stem}.n${n} RANKS ${n} TIMEOUT ${T_TIMEOUT}
      LABELS "distributed;${room}" COMMAND $<TARGET_FILE:${target}>)
  endforeach()
endfunction()

# One ctest entry that starts COMMAND on RANKS ranks; works as root, in containers, on fewer cores than ranks.
function(lerobot_add_mpi_command name)
  cmake_parse_arguments(T "" "RANKS;TIMEOUT" "LABELS;COMMAND" ${ARGN})
  add_test(NAME ${name} COMMAND ${MPIEXEC_EXECUTABLE} ${LEROBOT_MPIEXEC_FLAGS} -n ${T_RANKS} ${T_COMMAND})
  set_tests_properties(${name} PROPERTIES LABELS "${T_LABELS}" PROCESSORS 2 TIMEOUT ${T_TIMEOUT}
    ENVIRONMENT "OMP_NUM_THREADS=1;OMPI_MCA_mpi_yield_when_idle=1")
endfunction()
