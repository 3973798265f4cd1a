# find_package(lerobot): lerobot::lerobot is all rooms, lerobot::<room> one of them.
include(CMakePackageConfigHelpers)
get_property(rooms GLOBAL PROPERTY LEROBOT_ROOMS)
add_library(lerobot_all INTERFACE)
add_library(lerobot::lerobot ALIAS lerobot_all)
set_target_properties(lerobot_all PROPERTIES EXPORT_NAME lerobot)
set(targets lerobot_base lerobot_torch lerobot_all)
foreach(room IN LISTS rooms)
  target_link_libraries(lerobot_all INTERFACE lerobot::${room})
  list(APPEND targets lerobot_${room})
endforeach()
install(TARGETS ${targets} EXPORT lerobotTargets FILE_SET HEADERS DESTINATION ${CMAKE_INSTALL_INCLUDEDIR}
  ARCHIVE DESTINATION ${CMAKE_INSTALL_LIBDIR} LIBRARY DESTINATION ${CMAKE_INSTALL_LIBDIR})
set(package_dir ${CMAKE_INSTALL_LIBDIR}/cmake/lerobot)
install(EXPORT lerobotTargets NAMESPACE lerobot:: DESTINATION ${package_dir})
configure_package_config_file(cmake/lerobotConfig.cmake.in ${CMAKE_BINARY_DIR}/lerobotConfig.cmake
  INSTALL_DESTINATION ${package_dir})
write_basic_package_version_file(${CMAKE_BINARY_DIR}/lerobotConfigVersion.cmake COMPATIBILITY SameMinorVersion)
install(FILES ${CMAKE_BINARY_DIR}/lerobotConfig.cmake ${CMAKE_BINARY_DIR}/lerobotConfigVersion.cmake
  cmake/LerobotDependencies.cmake cmake/FindLibTorch.cmake cmake/FindArrowWheel.cmake DESTINATION ${package_dir})
