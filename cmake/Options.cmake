# Compiler, flags and output folders, the same for every target of the project.
set(CMAKE_CXX_STANDARD 20)
set(CMAKE_CXX_STANDARD_REQUIRED ON)
set(CMAKE_CXX_EXTENSIONS OFF)
set(CMAKE_EXPORT_COMPILE_COMMANDS ON)
set(CMAKE_RUNTIME_OUTPUT_DIRECTORY "${PROJECT_BINARY_DIR}/bin")

if(NOT CMAKE_BUILD_TYPE)
  set(CMAKE_BUILD_TYPE Release CACHE STRING "" FORCE)
endif()

find_program(CCACHE ccache)
if(CCACHE)
  set(CMAKE_CXX_COMPILER_LAUNCHER "${CCACHE}")
  set(CMAKE_CUDA_COMPILER_LAUNCHER "${CCACHE}")
endif()

set(SATRAP_MARCH native CACHE STRING "-march= of the host code: native, x86-64-v3, ...")
set(SATRAP_SANITIZE "" CACHE STRING "-fsanitize= value: 'address,undefined' or 'thread'; empty for none")

# Every target is compiled as C++ with these; vendor headers come in as SYSTEM and stay silent.
set(_host_flags
  -Wall -Wextra -Wconversion -Wshadow -Werror
  # Results must not depend on whether the compiler chose to fuse a multiply and an add;
  # where a fused one is wanted the code says std::fma.
  -ffp-contract=off -fno-math-errno -fno-trapping-math)
if(SATRAP_MARCH)
  list(APPEND _host_flags -march=${SATRAP_MARCH})
endif()
if(CMAKE_CXX_COMPILER_ID STREQUAL "GNU")
  # GCC 12 and 13 report overlaps inside std::string that are not there (GCC bug 105651).
  list(APPEND _host_flags -Wno-restrict)
endif()

if(CMAKE_UNITY_BUILD)
  # The sources of the project come in by #include: unnamed namespaces are theirs all the same.
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
  list(APPEND _host_flags -Wno-maybe-uninitialized)
  add_link_options(-fsanitize=${SATRAP_SANITIZE})
endif()

foreach(_flag IN LISTS _host_flags)
  add_compile_options("$<$<COMPILE_LANGUAGE:CXX>:${_flag}>")
endforeach()
