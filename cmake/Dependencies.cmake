# All of satrap's dependencies are found here and nowhere else. The versions are those of Debian 12, the older of the
# two supported systems; launch/setup.sh installs them. Nothing is vendored.
find_package(Threads REQUIRED)
find_package(yaml-cpp 0.7 REQUIRED CONFIG)
if(NOT TARGET yaml-cpp::yaml-cpp)  # the name before 0.8
  add_library(yaml-cpp::yaml-cpp ALIAS yaml-cpp)
endif()
find_package(fmt 9.1 REQUIRED CONFIG)
find_package(spdlog 1.10 REQUIRED CONFIG)
find_package(nlohmann_json 3.11 REQUIRED CONFIG)
find_package(simdjson REQUIRED CONFIG)  # its config takes a version for that minor version alone
if(simdjson_VERSION VERSION_LESS 3.0)
  message(FATAL_ERROR "simdjson 3.0 or newer wanted, ${simdjson_CONFIG} says ${simdjson_VERSION}")
endif()
find_package(CLI11 2.1 REQUIRED CONFIG)
find_package(ZLIB 1.2.13 REQUIRED)
find_package(OpenSSL 3.0 REQUIRED COMPONENTS Crypto)
find_package(GTest 1.12 REQUIRED CONFIG)
find_package(benchmark 1.7 REQUIRED CONFIG)
find_package(dnnl 2.6 QUIET CONFIG)  # dense_product_bench compares with it

# Packages that come without a usable CMake config: a header and a library.
function(_satrap_find_library target header library version_macro minimum)
  string(MAKE_C_IDENTIFIER "${target}" id)
  find_path(${id}_INCLUDE_DIR ${header} REQUIRED)
  find_library(${id}_LIBRARY ${library} REQUIRED)
  file(STRINGS "${${id}_INCLUDE_DIR}/${header}" lines REGEX "define +${version_macro}_(MAJOR|MINOR|RELEASE) ")
  string(REGEX REPLACE ".*_MAJOR +([0-9]+).*_MINOR +([0-9]+).*_RELEASE +([0-9]+).*" "\\1.\\2.\\3"
         version "${lines}")
  if(version VERSION_LESS minimum)
    message(FATAL_ERROR "${library} ${minimum} or newer wanted, ${${id}_INCLUDE_DIR}/${header} says ${version}")
  endif()
  add_library(${target} UNKNOWN IMPORTED GLOBAL)
  set_target_properties(${target} PROPERTIES IMPORTED_LOCATION "${${id}_LIBRARY}"
    INTERFACE_INCLUDE_DIRECTORIES "${${id}_INCLUDE_DIR}")
endfunction()
_satrap_find_library(Xxhash::xxhash xxhash.h xxhash XXH_VERSION 0.8.1)
_satrap_find_library(Zstd::zstd zstd.h zstd ZSTD_VERSION 1.5.4)

# Gloo is linked by a link *option*, which CMake puts before all libraries: others carry a Gloo of another version
# (libtorch_cpu.so does, which programs open but are not linked with), and the first in the program serves all callers.
# No shared library of ours may pull libgloo in: it would come second. satrap::net checks at run time which one it got.
find_path(GLOO_INCLUDE_DIR gloo/config.h REQUIRED)
find_library(GLOO_LIBRARY gloo REQUIRED)
add_library(Gloo::gloo INTERFACE IMPORTED GLOBAL)
target_include_directories(Gloo::gloo SYSTEM INTERFACE "${GLOO_INCLUDE_DIR}")
# The one header that the installed ones include but packages leave out; see its comment.
if(NOT EXISTS "${GLOO_INCLUDE_DIR}/gloo/common/memory.h")
  target_include_directories(Gloo::gloo SYSTEM INTERFACE "${PROJECT_SOURCE_DIR}/src/net/compat")
endif()
target_link_options(Gloo::gloo INTERFACE
  "LINKER:--push-state,--no-as-needed" "${GLOO_LIBRARY}" "LINKER:--pop-state")

include(TorchWheel)
include(ArrowWheel)
include(Rdkafka)
include(Curl)
include(Protobuf)
