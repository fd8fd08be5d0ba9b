# The kinds of targets: a module, a library that programs open, a program, and a module's tests and benchmarks.

# satrap_module(<name> [DEPS <module>...] [LINK <target>...] [PRIVATE_LINK <target>...] [WITHOUT <folder>]
#               [CONTROL | COLD])
# Library satrap_<name> from src/<name>/*.cpp and one level of folders below, except <folder>, a regular expression.
# DEPS and LINK are part of the module's interface; PRIVATE_LINK is not: its headers stay out of the module's public
# headers. A module without sources is a header-only library. CONTROL: it has no loops over rows; sanitizer builds do
# not optimise it. COLD: not worth the compile time of optimising it in any build. With CUDA, cuda/<name>/*.cu replaces
# no_cuda.cpp, which reports that there is none.
function(satrap_module name)
  cmake_parse_arguments(PARSE_ARGV 1 arg "CONTROL;COLD" "WITHOUT" "DEPS;LINK;PRIVATE_LINK")
  list(TRANSFORM arg_DEPS PREPEND satrap_)
  file(GLOB sources CONFIGURE_DEPENDS "src/${name}/*.cpp" "src/${name}/*/*.cpp")
  if(arg_WITHOUT)
    list(FILTER sources EXCLUDE REGEX "/src/${name}/${arg_WITHOUT}/")
  endif()
  if(SATRAP_HAVE_CUDA)
    file(GLOB cuda_sources CONFIGURE_DEPENDS "cuda/${name}/*.cu" "cuda/${name}/*.cpp" "cuda/${name}/*/*.cu")
    list(FILTER sources EXCLUDE REGEX "/no_cuda\\.cpp$")
    list(APPEND sources ${cuda_sources})
  endif()
  if(sources)
    add_library(satrap_${name} STATIC ${sources})
    target_include_directories(satrap_${name} PUBLIC "${PROJECT_SOURCE_DIR}/include"
                                              PRIVATE "${PROJECT_SOURCE_DIR}")
    target_link_libraries(satrap_${name} PUBLIC ${arg_DEPS} ${arg_LINK} PRIVATE ${arg_PRIVATE_LINK})
    if(SATRAP_HAVE_PYTHON)  # the Python module is of these too; what it hides costs a program nothing
      set_target_properties(satrap_${name} PROPERTIES POSITION_INDEPENDENT_CODE ON
        CXX_VISIBILITY_PRESET hidden VISIBILITY_INLINES_HIDDEN ON)
    endif()
    if(arg_CONTROL OR arg_COLD)
      target_compile_options(satrap_${name} PRIVATE $<$<CONFIG:Sanitize>:-O0>)
    endif()
    if(arg_COLD)
      target_compile_options(satrap_${name} PRIVATE $<$<CONFIG:Release>:-O1>)
    endif()
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

# satrap_loaded_library(<name> <folder> [WITH <folder>] [CUDA <folder>] LINK <target>...): lib/libsatrap_<name>.so from
# <folder>/*.cpp, and those of the folder WITH which it shares sources with another library. Programs open it when they
# need it. It shares headers with them but no object. The sources of the folder with CUDA replace no_cuda.cpp.
function(satrap_loaded_library name folder)
  cmake_parse_arguments(PARSE_ARGV 2 arg "" "WITH;CUDA" "LINK")
  file(GLOB sources CONFIGURE_DEPENDS "${folder}/*.cpp")
  if(arg_WITH)
    file(GLOB shared_sources CONFIGURE_DEPENDS "${arg_WITH}/*.cpp")
    list(APPEND sources ${shared_sources})
  endif()
  if(arg_CUDA)
    file(GLOB cuda_sources CONFIGURE_DEPENDS "${arg_CUDA}/*.cpp")
    list(FILTER sources EXCLUDE REGEX "/no_cuda\\.cpp$")
    list(APPEND sources ${cuda_sources})
  endif()
  add_library(satrap_${name} MODULE ${sources})
  set_target_properties(satrap_${name} PROPERTIES LIBRARY_OUTPUT_DIRECTORY "${PROJECT_BINARY_DIR}/lib"
    INSTALL_RPATH "$ORIGIN")
  target_include_directories(satrap_${name} PRIVATE "${PROJECT_SOURCE_DIR}/include" "${PROJECT_SOURCE_DIR}")
  target_link_libraries(satrap_${name} PRIVATE ${arg_LINK})
endfunction()

# satrap_python_module(<folder> LINK <target>...): python/satrap in the build folder: the package of the checkout, as links,
# and beside it its compiled part, _engine, from <folder>/*.cpp, with its types (engine_stub). Where Python is 3.12 or newer that is one file for all
# later versions too.
function(satrap_python_module folder)
  cmake_parse_arguments(PARSE_ARGV 1 arg "" "" "LINK")
  set(package "${PROJECT_BINARY_DIR}/python/satrap")
  file(MAKE_DIRECTORY "${package}")
  file(GLOB scripts CONFIGURE_DEPENDS "python/satrap/*.py")
  foreach(script IN LISTS scripts)
    cmake_path(GET script FILENAME name)
    file(CREATE_LINK "${script}" "${package}/${name}" SYMBOLIC)
  endforeach()
  file(GLOB sources CONFIGURE_DEPENDS "${folder}/*.cpp")
  nanobind_add_module(_engine STABLE_ABI NB_STATIC NB_SUPPRESS_WARNINGS NOMINSIZE NOSTRIP PROTECT_STACK ${sources})
  set_target_properties(_engine PROPERTIES LIBRARY_OUTPUT_DIRECTORY "${package}"
    BUILD_RPATH "${PROJECT_BINARY_DIR}/lib")
  target_include_directories(_engine PRIVATE "${PROJECT_SOURCE_DIR}")
  target_link_libraries(_engine PRIVATE ${arg_LINK})
  # Nothing of satrap is seen by other modules of the process, nor the other way round.
  target_link_options(_engine PRIVATE "LINKER:--exclude-libs,ALL" "LINKER:-Bsymbolic")
  get_target_property(libraries _engine LINK_LIBRARIES)
  list(FILTER libraries INCLUDE REGEX "^nanobind-static")
  set_target_properties(${libraries} PROPERTIES UNITY_BUILD OFF)
  target_compile_options(${libraries} PRIVATE -w)  # a vendor's
  nanobind_add_stub(engine_stub MODULE _engine OUTPUT "${package}/_engine.pyi" PYTHON_PATH "${package}" DEPENDS _engine)
endfunction()

# satrap_embed(<name> <template> <file>...): <template>, a .cpp.in in which @<file>@ is replaced by the text of
# each file, becomes a source of module <name>.
function(satrap_embed name template)
  cmake_path(GET template PARENT_PATH folder)
  cmake_path(GET template STEM LAST_ONLY source)
  foreach(file IN LISTS ARGN)
    file(READ "${folder}/${file}" "${file}")
    set_property(DIRECTORY APPEND PROPERTY CMAKE_CONFIGURE_DEPENDS "${folder}/${file}")
  endforeach()
  configure_file("${template}" "${PROJECT_BINARY_DIR}/${folder}/${source}" @ONLY)
  target_sources(satrap_${name} PRIVATE "${PROJECT_BINARY_DIR}/${folder}/${source}")
endfunction()

# satrap_embed_configurations(<name> <template> <folder>): <template>, in which @SATRAP_CONFIGURATION_FILES@ is replaced
# by {set, file, text} of each <folder>/<set>/<file>.yaml, becomes a source of module <name>. Those of datasets/adult that
# train on the files beside them, quickstart and persia, are left out.
function(satrap_embed_configurations name template folder)
  cmake_path(GET template PARENT_PATH to)
  cmake_path(GET template STEM LAST_ONLY source)
  file(GLOB files CONFIGURE_DEPENDS "${folder}/*/*.yaml")
  list(FILTER files EXCLUDE REGEX "/adult/(quickstart|persia)\\.yaml$")
  set(SATRAP_CONFIGURATION_FILES "")
  foreach(file IN LISTS files)
    cmake_path(GET file FILENAME file_name)
    cmake_path(GET file PARENT_PATH set)
    cmake_path(GET set FILENAME set)
    file(READ "${file}" text)
    set_property(DIRECTORY APPEND PROPERTY CMAKE_CONFIGURE_DEPENDS "${file}")
    string(APPEND SATRAP_CONFIGURATION_FILES "      {\"${set}\", \"${file_name}\", R\"YAML(${text})YAML\"},\n")
  endforeach()
  configure_file("${template}" "${PROJECT_BINARY_DIR}/${to}/${source}" @ONLY)
  target_sources(satrap_${name} PRIVATE "${PROJECT_BINARY_DIR}/${to}/${source}")
endfunction()

# satrap_program(<name> LINK <target>...): bin/<name> from launch/<name>.cpp, once that file exists.
function(satrap_program name)
  cmake_parse_arguments(PARSE_ARGV 1 arg "" "" "LINK")
  file(GLOB source CONFIGURE_DEPENDS "launch/${name}.cpp")
  if(source)
    add_executable(${name} ${source})
    target_link_libraries(${name} PRIVATE ${arg_LINK} satrap_sanitizer_options)
  endif()
endfunction()

# satrap_test_options(<target>): how the C++ of all tests is compiled and linked. Tests use slow and obvious code, all of
# a program's as one: optimising it, or compiling it in parts that use the same templates, costs more than it saves.
function(satrap_test_options target)
  target_include_directories(${target} PRIVATE "${PROJECT_SOURCE_DIR}")
  target_compile_options(${target} PRIVATE $<$<NOT:$<CONFIG:Debug>>:-O0>)
  set_target_properties(${target} PROPERTIES UNITY_BUILD_BATCH_SIZE 0)
  target_link_libraries(${target} PRIVATE satrap_test_support GTest::gmock GTest::gtest_main)
endfunction()

# satrap_discover_suites(<name>): every suite of <name>_tests is one test of ctest: to start a program takes longer than
# most tests.
function(satrap_discover_suites name)
  set(folder "${PROJECT_BINARY_DIR}/tests")
  set(include "${folder}/${name}_suites.cmake")
  add_custom_command(TARGET ${name}_tests POST_BUILD VERBATIM
    COMMAND "${CMAKE_COMMAND}" -D "PROGRAM=$<TARGET_FILE:${name}_tests>" -D NAME=${name}
      -D "EMULATOR=${CMAKE_CROSSCOMPILING_EMULATOR}"
      -D "FOLDER=${folder}" -D "RESULTS=${PROJECT_BINARY_DIR}/gtest" -D "INCLUDE=${include}"
      -P "${PROJECT_SOURCE_DIR}/cmake/DiscoverSuites.cmake")
  file(WRITE "${folder}/${name}_include.cmake"
    "if(EXISTS [[${include}]])\n  include([[${include}]])\nelse()\n"
    "  add_test(${name}_tests_NOT_BUILT ${name}_tests_NOT_BUILT)\nendif()\n")
  set_property(DIRECTORY APPEND PROPERTY TEST_INCLUDE_FILES "${folder}/${name}_include.cmake")
endfunction()

# satrap_tests(<name>): tests/<name>/*_test.cpp become the program <name>_tests, every suite one test of ctest with
# label <name>; every tests/<name>/*_test.py is one test too (exit status 77: skipped).
function(satrap_tests name)
  file(GLOB sources CONFIGURE_DEPENDS "${PROJECT_SOURCE_DIR}/tests/${name}/*_test.cpp"
                                      "${PROJECT_SOURCE_DIR}/tests/${name}/*/*_test.cpp")
  if(sources)
    add_executable(${name}_tests ${sources})
    set_target_properties(${name}_tests PROPERTIES
      RUNTIME_OUTPUT_DIRECTORY "${PROJECT_BINARY_DIR}/tests")
    satrap_test_options(${name}_tests)
    if(TARGET satrap_${name})
      target_link_libraries(${name}_tests PRIVATE satrap_${name})
    endif()
    if(name MATCHES "^(dense|pipeline|checkpoint|trainer|app)$")
      add_dependencies(${name}_tests satrap_libtorch)
      if(SATRAP_HAVE_ONNX)
        add_dependencies(${name}_tests satrap_onnx)
      endif()
    endif()
    satrap_discover_suites(${name})
  endif()

  file(GLOB scripts CONFIGURE_DEPENDS "${PROJECT_SOURCE_DIR}/tests/${name}/*_test.py")
  foreach(script IN LISTS scripts)
    cmake_path(GET script STEM stem)
    add_test(NAME ${name}.${stem} COMMAND "${SATRAP_PYTHON}" "${script}"
             WORKING_DIRECTORY "${PROJECT_SOURCE_DIR}")
    # What takes longest starts first, so that no processor waits at the end.
    set_tests_properties(${name}.${stem} PROPERTIES LABELS ${name} TIMEOUT 1200 SKIP_RETURN_CODE 77 COST 200
      ENVIRONMENT "SATRAP_BIN=${PROJECT_BINARY_DIR}/bin/satrap;SATRAP_BUILD_DIR=${PROJECT_BINARY_DIR};SATRAP_SOURCE_DIR=${PROJECT_SOURCE_DIR};SATRAP_SANITIZE=${SATRAP_SANITIZE};OMP_NUM_THREADS=1;PYTHONDONTWRITEBYTECODE=1")
  endforeach()
endfunction()

# satrap_bench(<program> <source>... LINK <target>...): a program of bench/, which the target `benches` builds and `all`
# does not: only some tests need some of them.
add_custom_target(benches)
function(satrap_bench program)
  cmake_parse_arguments(PARSE_ARGV 1 arg "" "" "LINK")
  add_executable(${program} EXCLUDE_FROM_ALL ${arg_UNPARSED_ARGUMENTS})
  set_target_properties(${program} PROPERTIES RUNTIME_OUTPUT_DIRECTORY "${PROJECT_BINARY_DIR}/bench")
  target_include_directories(${program} PRIVATE "${PROJECT_SOURCE_DIR}")
  target_link_libraries(${program} PRIVATE ${arg_LINK} satrap_sanitizer_options)
  add_dependencies(benches ${program})
endfunction()

# satrap_benches(<name>): every bench/<name>/x_bench.cpp becomes the program bench/<name>_x_bench.
function(satrap_benches name)
  file(GLOB sources CONFIGURE_DEPENDS "${PROJECT_SOURCE_DIR}/bench/${name}/*_bench.cpp")
  foreach(source IN LISTS sources)
    cmake_path(GET source STEM stem)
    satrap_bench(${name}_${stem} ${source} LINK satrap_${name} benchmark::benchmark benchmark::benchmark_main)
    add_dependencies(${name}_${stem} satrap_libtorch)
  endforeach()
endfunction()

# Options and suppressions of every program of a sanitizer build, so that it behaves the same under ctest, by hand, and
# as a child of a Python test.
add_library(satrap_sanitizer_options INTERFACE)
if(SATRAP_SANITIZE)
  add_library(satrap_sanitizer_objects OBJECT tests/support/sanitizers/options.cpp)
  target_link_libraries(satrap_sanitizer_options INTERFACE
    satrap_sanitizer_objects $<TARGET_OBJECTS:satrap_sanitizer_objects>)
endif()
