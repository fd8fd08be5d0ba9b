# The three shapes everything in the project has: a module, its tests, its benchmarks.

# satrap_module(<name> [DEPS <module>...] [LINK <target>...] [PRIVATE_LINK <target>...])
# Library satrap_<name> of src/<name>/*.cpp and one level of folders below. DEPS and LINK are part of
# the module's interface, PRIVATE_LINK is not: its headers stay out of the module's public headers.
# A module without sources is a header-only library.
# With CUDA, cuda/<name>/*.cu joins in and the link-time stand-ins no_cuda.cpp and no_nccl.cpp drop out.
function(satrap_module name)
  cmake_parse_arguments(PARSE_ARGV 1 arg "" "" "DEPS;LINK;PRIVATE_LINK")
  list(TRANSFORM arg_DEPS PREPEND satrap_)
  file(GLOB sources CONFIGURE_DEPENDS "src/${name}/*.cpp" "src/${name}/*/*.cpp")
  if(SATRAP_HAVE_CUDA)
    file(GLOB cuda_sources CONFIGURE_DEPENDS "cuda/${name}/*.cu" "cuda/${name}/*.cpp" "cuda/${name}/*/*.cu")
    list(FILTER sources EXCLUDE REGEX "/no_(cuda|nccl)\\.cpp$")
    list(APPEND sources ${cuda_sources})
  endif()
  if(sources)
    add_library(satrap_${name} STATIC ${sources})
    target_include_directories(satrap_${name} PUBLIC "${PROJECT_SOURCE_DIR}/include"
                                              PRIVATE "${PROJECT_SOURCE_DIR}")
    target_link_libraries(satrap_${name} PUBLIC ${arg_DEPS} ${arg_LINK} PRIVATE ${arg_PRIVATE_LINK})
    if(SATRAP_HAVE_CUDA AND cuda_sources)
      target_link_libraries(satrap_${name} PRIVATE Cuda::rt)
    endif()
  else()
    add_library(satrap_${name} INTERFACE)
    target_include_directories(satrap_${name} INTERFACE "${PROJECT_SOURCE_DIR}/include")
    target_link_libraries(satrap_${name} INTERFACE ${arg_DEPS} ${arg_LINK})
  endif()
  set_property(GLOBAL APPEND PROPERTY SATRAP_MODULES ${name})
endfunction()

# satrap_program(<name> LINK <target>...): bin/<name> of launch/<name>.cpp, once that file is there.
function(satrap_program name)
  cmake_parse_arguments(PARSE_ARGV 1 arg "" "" "LINK")
  file(GLOB source CONFIGURE_DEPENDS "launch/${name}.cpp")
  if(source)
    add_executable(${name} ${source})
    target_link_libraries(${name} PRIVATE ${arg_LINK} satrap_sanitizer_options)
  endif()
endfunction()

# satrap_tests(<name>): tests/<name>/*_test.cpp become the program <name>_tests, every TEST one test of
# ctest with label <name>; every tests/<name>/*_test.py is one test too (exit status 77: skipped).
function(satrap_tests name)
  file(GLOB sources CONFIGURE_DEPENDS "${PROJECT_SOURCE_DIR}/tests/${name}/*_test.cpp"
                                      "${PROJECT_SOURCE_DIR}/tests/${name}/*/*_test.cpp")
  if(sources)
    add_executable(${name}_tests ${sources})
    set_target_properties(${name}_tests PROPERTIES
      RUNTIME_OUTPUT_DIRECTORY "${PROJECT_BINARY_DIR}/tests")
    target_include_directories(${name}_tests PRIVATE "${PROJECT_SOURCE_DIR}")
    target_compile_definitions(${name}_tests PRIVATE SATRAP_SOURCE_DIR="${PROJECT_SOURCE_DIR}")
    target_link_libraries(${name}_tests PRIVATE satrap_test_support GTest::gmock GTest::gtest_main)
    if(TARGET satrap_${name})
      target_link_libraries(${name}_tests PRIVATE satrap_${name})
    endif()
    gtest_discover_tests(${name}_tests
      WORKING_DIRECTORY "${PROJECT_BINARY_DIR}/tests"
      TEST_PREFIX ${name}. DISCOVERY_TIMEOUT 300
      PROPERTIES LABELS ${name} TIMEOUT 600 ENVIRONMENT OMP_NUM_THREADS=1)
  endif()

  file(GLOB scripts CONFIGURE_DEPENDS "${PROJECT_SOURCE_DIR}/tests/${name}/*_test.py")
  foreach(script IN LISTS scripts)
    cmake_path(GET script STEM stem)
    add_test(NAME ${name}.${stem} COMMAND "${SATRAP_PYTHON}" "${script}"
             WORKING_DIRECTORY "${PROJECT_SOURCE_DIR}")
    set_tests_properties(${name}.${stem} PROPERTIES LABELS ${name} TIMEOUT 1200 SKIP_RETURN_CODE 77
      ENVIRONMENT "SATRAP_BIN=${PROJECT_BINARY_DIR}/bin/satrap;SATRAP_BUILD_DIR=${PROJECT_BINARY_DIR};SATRAP_SOURCE_DIR=${PROJECT_SOURCE_DIR};SATRAP_SANITIZE=${SATRAP_SANITIZE};OMP_NUM_THREADS=1;PYTHONDONTWRITEBYTECODE=1")
  endforeach()
endfunction()

# satrap_benches(<name>): every bench/<name>/x_bench.cpp becomes the program bench/<name>_x_bench.
function(satrap_benches name)
  file(GLOB sources CONFIGURE_DEPENDS "${PROJECT_SOURCE_DIR}/bench/${name}/*_bench.cpp")
  foreach(source IN LISTS sources)
    cmake_path(GET source STEM stem)
    add_executable(${name}_${stem} ${source})
    set_target_properties(${name}_${stem} PROPERTIES
      RUNTIME_OUTPUT_DIRECTORY "${PROJECT_BINARY_DIR}/bench")
    target_include_directories(${name}_${stem} PRIVATE "${PROJECT_SOURCE_DIR}")
    target_link_libraries(${name}_${stem} PRIVATE satrap_${name} satrap_sanitizer_options
      benchmark::benchmark benchmark::benchmark_main)
    if(SATRAP_SANITIZE)
      set_target_properties(${name}_${stem} PROPERTIES EXCLUDE_FROM_ALL ON)
    endif()
  endforeach()
endfunction()

# What every program of a sanitizer build carries: options and suppressions, so that it behaves the
# same under ctest, by hand, and as a child of a Python test.
add_library(satrap_sanitizer_options INTERFACE)
if(SATRAP_SANITIZE)
  add_library(satrap_sanitizer_objects OBJECT tests/support/sanitizers/options.cpp)
  target_link_libraries(satrap_sanitizer_options INTERFACE
    satrap_sanitizer_objects $<TARGET_OBJECTS:satrap_sanitizer_objects>)
endif()
