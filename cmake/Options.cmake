# Compiler, flags and output folders, the same for every target of the project.
set(CMAKE_CXX_STANDARD 20)
set(CMAKE_CXX_STANDARD_REQUIRED ON)
set(CMAKE_CXX_EXTENSIONS OFF)
set(CMAKE_EXPORT_COMPILE_COMMANDS ON)
# There are no C++20 modules; CMake 3.28 and newer would scan every source for them, with flags that clang-tidy does not
# know.
set(CMAKE_CXX_SCAN_FOR_MODULES OFF)
set(CMAKE_RUNTIME_OUTPUT_DIRECTORY "${PROJECT_BINARY_DIR}/bin")
# Where programs look for the libraries that they open: beside them, or here if they were copied. As RPATH, since
# RUNPATH counts only for who calls dlopen, which in sanitizer builds is the sanitizer.
set(CMAKE_BUILD_RPATH "$ORIGIN/../lib;${PROJECT_BINARY_DIR}/lib")
include(GNUInstallDirs)
set(SATRAP_INSTALL_LIBDIR "${CMAKE_INSTALL_LIBDIR}/satrap")  # libraries that only satrap uses
file(RELATIVE_PATH _libraries "${CMAKE_INSTALL_FULL_BINDIR}" "${CMAKE_INSTALL_FULL_LIBDIR}/satrap")
set(CMAKE_INSTALL_RPATH "$ORIGIN/${_libraries}")
add_link_options("LINKER:--disable-new-dtags")

if(NOT CMAKE_BUILD_TYPE)
  set(CMAKE_BUILD_TYPE Release CACHE STRING "" FORCE)
endif()

find_program(CCACHE ccache)
if(CCACHE)
  set(CMAKE_CXX_COMPILER_LAUNCHER "${CCACHE}")
  if(NOT CMAKE_BUILD_TYPE STREQUAL "Debug")  # clones in other folders share what it keeps
    list(PREPEND CMAKE_CXX_COMPILER_LAUNCHER env "CCACHE_BASEDIR=${PROJECT_SOURCE_DIR}" CCACHE_NOHASHDIR=1)
  endif()
  set(CMAKE_CUDA_COMPILER_LAUNCHER ${CMAKE_CXX_COMPILER_LAUNCHER})
endif()

# The target of the host code: this machine, or the least CPU that satrap is tested on.
set(_march native)
if(CMAKE_CROSSCOMPILING)
  set(_march portable)
endif()
set(SATRAP_MARCH ${_march} CACHE STRING "-march= of the host code: native, portable (x86-64-v3, armv8.2-a), or another")
set(_march "${SATRAP_MARCH}")
if(SATRAP_MARCH STREQUAL "portable" AND CMAKE_SYSTEM_PROCESSOR STREQUAL "aarch64")
  set(_march armv8.2-a)
elseif(SATRAP_MARCH STREQUAL "portable")
  set(_march x86-64-v3)
endif()
if(_march MATCHES "^x86-64-v[234]$")  # on an older CPU the loader says so, and starts no program
  add_link_options("LINKER:-z,${_march}")
endif()
set(SATRAP_SANITIZE "" CACHE STRING "-fsanitize= value: 'address,undefined' or 'thread'; empty for none")

# Flags of every C++ target; vendor headers are included as SYSTEM and do not warn. Warnings are errors with
# CMAKE_COMPILE_WARNING_AS_ERROR: in the preset debug, and wherever the environment has SATRAP_WERROR=ON, as in CI. A
# user's compiler may be newer than any of ours.
set(_host_flags
  -Wall -Wextra -Wconversion -Wshadow
  # Results must not depend on whether the compiler fuses a multiply and an add; code that wants a fused one says
  # std::fma.
  -ffp-contract=off -fno-math-errno -fno-trapping-math)
# Names of files in messages begin in the checkout, as ccache keeps them for every clone; a debugger's are whole.
list(APPEND _host_flags $<$<NOT:$<CONFIG:Debug>>:-ffile-prefix-map=${PROJECT_SOURCE_DIR}/=>)
if(_march STREQUAL "native" AND CMAKE_SYSTEM_PROCESSOR STREQUAL "aarch64")
  list(APPEND _host_flags -mcpu=native)  # on ARM -march=native leaves the tuning at an average core's
elseif(_march)
  list(APPEND _host_flags -march=${_march})
endif()
if(CMAKE_CXX_COMPILER_ID STREQUAL "GNU")
  # GCC 12 and 13 report overlaps inside std::string that are not there (GCC bug 105651). psabi notes what changed
  # before the oldest compiler that can build this.
  list(APPEND _host_flags -Wno-restrict -Wno-psabi)
elseif(CMAKE_CXX_COMPILER_ID MATCHES "Clang")
  # Of processors with AVX10.1 Clang 19 reads a combination of features from -march=native that it then objects to.
  list(APPEND _host_flags -Wno-unknown-warning-option -Wno-invalid-feature-combination)
  list(APPEND _host_flags -Werror=thread-safety)  # locks: satrap/core/mutex.h
  if(NOT SATRAP_SANITIZE MATCHES "fuzzer")  # their sources have neither
    # Clang's -Wconversion has this in it, GCC's has not. std::stable_sort of GCC 12's library uses what it deprecates.
    list(APPEND _host_flags -Wno-sign-conversion -Wno-deprecated-declarations)
  endif()
endif()

if(CMAKE_UNITY_BUILD)
  # Unity builds include the project's sources: unnamed namespaces are theirs all the same.
  list(APPEND _host_flags $<$<CXX_COMPILER_ID:GNU>:-Wno-subobject-linkage>)
endif()

set(CMAKE_CXX_FLAGS_RELEASE "-O3 -DNDEBUG")
set(CMAKE_CXX_FLAGS_DEBUG "-O0 -g -D_GLIBCXX_ASSERTIONS")
set(CMAKE_CXX_FLAGS_SANITIZE "-O1 -g1 -fno-omit-frame-pointer -D_GLIBCXX_ASSERTIONS")

if(SATRAP_SANITIZE)
  list(APPEND _host_flags -fsanitize=${SATRAP_SANITIZE})
  if(SATRAP_SANITIZE MATCHES "undefined")
    list(APPEND _host_flags -fno-sanitize-recover=undefined)
  endif()
  # The instrumentation hides initialisations from this analysis.
  list(APPEND _host_flags $<$<CXX_COMPILER_ID:GNU>:-Wno-maybe-uninitialized>)
  add_link_options(-fsanitize=${SATRAP_SANITIZE})
  if(CMAKE_CXX_COMPILER_ID MATCHES "Clang")  # GCC has these of its own
    if(SATRAP_SANITIZE MATCHES "address")
      add_compile_definitions(__SANITIZE_ADDRESS__=1)
    else()
      add_compile_definitions(__SANITIZE_THREAD__=1)
    endif()
  endif()
endif()

foreach(_flag IN LISTS _host_flags)
  add_compile_options("$<$<COMPILE_LANGUAGE:CXX>:${_flag}>")
endforeach()
