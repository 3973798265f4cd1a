# Arrow and Parquet C++: from the distribution where it has them, else from the pyarrow wheel that scripts/setup
# installed (its libraries carry versioned names only, so they are globbed).
# Makes Arrow::Parquet. Sets ArrowWheel_WHERE.
if(NOT TARGET Arrow::Parquet)
  file(GLOB _arrow_roots "${LEROBOT_DEPS}/venv/lib/python3*/site-packages/pyarrow")
  if(PYARROW)
    set(_arrow_roots ${PYARROW})
  endif()
  set(ArrowWheel_WHERE "")
  foreach(_root IN LISTS _arrow_roots)
    file(GLOB _arrow_lib "${_root}/libarrow.so.*")
    file(GLOB _parquet_lib "${_root}/libparquet.so.*")
    if(NOT ArrowWheel_WHERE AND _arrow_lib AND _parquet_lib)
      set(ArrowWheel_WHERE "${_root}")
      add_library(Arrow::Parquet INTERFACE IMPORTED GLOBAL)
      set_target_properties(Arrow::Parquet PROPERTIES
        INTERFACE_INCLUDE_DIRECTORIES "${_root}/include"
        INTERFACE_LINK_LIBRARIES "${_parquet_lib};${_arrow_lib}"
        INTERFACE_LINK_OPTIONS "-Wl,-rpath,${_root};-Wl,--allow-shlib-undefined")
    endif()
  endforeach()
  if(NOT ArrowWheel_WHERE)
    find_package(Parquet QUIET)
    if(Parquet_FOUND)
      add_library(Arrow::Parquet INTERFACE IMPORTED GLOBAL)
      target_link_libraries(Arrow::Parquet INTERFACE Parquet::parquet_shared)
      set(ArrowWheel_WHERE "${Parquet_DIR}")
    endif()
  endif()
endif()
if(NOT ArrowWheel_WHERE)
  message(FATAL_ERROR "lerobot: Arrow/Parquet was not found. Run scripts/setup, or give -DPYARROW=<folder of a pyarrow wheel>.")
endif()
