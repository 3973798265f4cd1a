# lerobot_add_room(<name> [SOURCES <cpp>...] [HEADERS <hpp>...] [ROOMS <room>...] [INCLUDES <room>...] [LINK <target>...]
#                  [PRIVATE_LINK <target>...] [PCH])
#
# Makes target lerobot_<name>, alias lerobot::<name>. ROOMS is the whole list of rooms this one may include: it is
# linked, and the test hygiene.includes.<name> checks every #include line of the room against it.
# INCLUDES: rooms whose headers may be included too, but which are not linked whole (LINK names the part that is).
# PCH: the sources use torch::nn; they share the one precompiled header of torch/torch.h.
function(lerobot_add_room name)
  cmake_parse_arguments(ROOM "PCH" "" "SOURCES;HEADERS;ROOMS;INCLUDES;LINK;PRIVATE_LINK" ${ARGN})
  set(target lerobot_${name})
  list(TRANSFORM ROOM_HEADERS PREPEND ${PROJECT_SOURCE_DIR}/include/lerobot/${name}/)
  list(TRANSFORM ROOM_ROOMS PREPEND lerobot:: OUTPUT_VARIABLE deps)
  if(ROOM_SOURCES)
    add_library(${target} STATIC ${ROOM_SOURCES})
    set(scope PUBLIC)
    target_link_libraries(${target} PRIVATE $<BUILD_INTERFACE:lerobot::warnings> ${ROOM_PRIVATE_LINK})
    target_include_directories(${target} PRIVATE ${PROJECT_SOURCE_DIR}/lib)
    if(ROOM_PCH)
      lerobot_use_pch(${target})
    endif()
  else()
    add_library(${target} INTERFACE)
    set(scope INTERFACE)
  endif()
  add_library(lerobot::${name} ALIAS ${target})
  target_sources(${target} ${scope} FILE_SET HEADERS BASE_DIRS ${PROJECT_SOURCE_DIR}/include FILES ${ROOM_HEADERS})
  target_link_libraries(${target} ${scope} lerobot::base ${deps} ${ROOM_LINK})
  set_target_properties(${target} PROPERTIES EXPORT_NAME ${name} VERIFY_INTERFACE_HEADER_SETS ON)
  set_property(GLOBAL APPEND PROPERTY LEROBOT_ROOMS ${name})
  if(LEROBOT_TESTS)
    list(JOIN ROOM_ROOMS "," allowed)
    if(ROOM_INCLUDES)
      list(JOIN ROOM_INCLUDES "," includes)
      string(APPEND allowed ",${includes}")
    endif()
    add_test(NAME hygiene.includes.${name}
      COMMAND ${CMAKE_COMMAND} -DROOM=${name} -DALLOWED=${allowed} -DROOT=${PROJECT_SOURCE_DIR}
              -P ${PROJECT_SOURCE_DIR}/cmake/CheckRoomIncludes.cmake)
    set_tests_properties(hygiene.includes.${name} PROPERTIES LABELS hygiene)
  endif()
endfunction()

# One precompiled torch/torch.h for the whole tree: it costs 40 s once and saves 10 to 30 s in each source.
add_library(lerobot_pch OBJECT ${PROJECT_SOURCE_DIR}/cmake/pch.cpp)
target_link_libraries(lerobot_pch PRIVATE lerobot::base lerobot::torch)
target_precompile_headers(lerobot_pch PRIVATE <torch/torch.h> <fmt/format.h>)
target_link_libraries(lerobot_pch PRIVATE fmt::fmt-header-only lerobot::warnings)  # -Wpedantic changes predefined macros, so the PCH must see it too
function(lerobot_use_pch target)
  target_precompile_headers(${target} REUSE_FROM lerobot_pch)
endfunction()
