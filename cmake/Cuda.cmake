# CUDA 13.0 for the sources under cuda/. SATRAP_CUDA: ON (stop if something is missing), OFF, or AUTO (build without it
# and say why). Result: SATRAP_HAVE_CUDA, and the targets Cuda::rt (headers and the runtime of the wheel, which libtorch
# loads too, so that the process has only one) and Nccl::opened.
# nvcc is taken from $CUDACXX, PATH, /usr/local/cuda or the wheel in torch's folder (launch/setup.sh cuda).
# find_package(CUDAToolkit) is not used: it looks for the wheel's unversioned libraries, which do not exist.
set(SATRAP_CUDA OFF CACHE STRING "Build the CUDA sources: AUTO, ON or OFF")
set_property(CACHE SATRAP_CUDA PROPERTY STRINGS AUTO ON OFF)
set(SATRAP_HAVE_CUDA OFF)

# Multiplications and additions are fused only where the code says fmaf, as on the host. Constexpr functions of the host
# headers (hashes, tags) are also called on the device.
set(SATRAP_CUDA_FLAGS -fmad=false --expt-relaxed-constexpr)

# Sets <nvcc> to the compiler, and <reason> to an empty string or to why there is none.
function(satrap_find_nvcc nvcc reason)
  set(${reason} "" PARENT_SCOPE)
  if(DEFINED ENV{CUDACXX})
    set(SATRAP_NVCC "$ENV{CUDACXX}" CACHE FILEPATH "nvcc 13.0" FORCE)
  endif()
  find_program(SATRAP_NVCC nvcc NO_CMAKE_SYSTEM_PATH
    PATHS /usr/local/cuda/bin "${TORCH_NVIDIA_DIR}/cu13/bin")
  if(NOT SATRAP_NVCC)
    set(${reason} "no nvcc in \$CUDACXX, PATH, /usr/local/cuda/bin or ${TORCH_NVIDIA_DIR}/cu13/bin; \
./launch/setup.sh cuda installs the wheel" PARENT_SCOPE)
    return()
  endif()
  execute_process(COMMAND "${SATRAP_NVCC}" --version OUTPUT_VARIABLE text ERROR_VARIABLE text)
  if(NOT text MATCHES "release 13\\.0,")
    set(${reason} "CUDA 13.0 wanted, ${SATRAP_NVCC} --version says: ${text}" PARENT_SCOPE)
  endif()
  set(${nvcc} "${SATRAP_NVCC}" PARENT_SCOPE)
endfunction()

if(NOT SATRAP_CUDA)
  return()
endif()
satrap_find_nvcc(_nvcc _reason)
if(NOT _reason AND NOT TARGET Torch::cuda)
  set(_reason "${_torch_dir} is the set of wheels for CPUs; ./launch/setup.sh cuda installs the rest")
endif()
if(_reason)
  if(SATRAP_CUDA STREQUAL "AUTO")
    message(STATUS "CUDA: off (${_reason})")
    return()
  endif()
  message(FATAL_ERROR "SATRAP_CUDA=${SATRAP_CUDA}: ${_reason}")
endif()

get_filename_component(_nvcc_real "${_nvcc}" REALPATH)
cmake_path(GET _nvcc_real PARENT_PATH _cuda_bin)
cmake_path(GET _cuda_bin PARENT_PATH _cuda_root)
if(NOT IS_DIRECTORY "${_cuda_root}/lib64" AND EXISTS "${_cuda_root}/lib/libcudart_static.a")
  # nvcc.profile says lib64, the wheel has lib.
  set(CMAKE_CUDA_FLAGS "-L${_cuda_root}/lib" CACHE STRING "The wheel's nvcc needs its library folder")
endif()
set(CMAKE_CUDA_COMPILER "${_nvcc}" CACHE FILEPATH "")
set(CMAKE_CUDA_ARCHITECTURES "80-real;90" CACHE STRING "SASS for sm_80 and sm_90, PTX for newer ones")
set(CMAKE_CUDA_RUNTIME_LIBRARY None)
enable_language(CUDA)
# Because of the -L above CMake takes that folder for an implicit one, and implicit ones never enter the RPATH.
list(REMOVE_ITEM CMAKE_CUDA_IMPLICIT_LINK_DIRECTORIES "${_cuda_root}/lib")
foreach(_kind STANDARD EXTENSION)  # CMake before 3.26 does not know nvcc's -std=c++20.
  if(NOT DEFINED CMAKE_CUDA20_${_kind}_COMPILE_OPTION)
    set(CMAKE_CUDA20_${_kind}_COMPILE_OPTION "-std=c++20")
  endif()
endforeach()
set(CMAKE_CUDA_COMPILER_LAUNCHER "${PROJECT_SOURCE_DIR}/cmake/keep_ptxas_report.sh"
  ${CMAKE_CUDA_COMPILER_LAUNCHER})
set(CMAKE_CUDA_STANDARD 20)
# The launcher keeps ptxas' report of registers and spills in the folder of each object file, for registers_test.py.
add_compile_options("$<$<COMPILE_LANGUAGE:CUDA>:${SATRAP_CUDA_FLAGS};-Xptxas=-v;-lineinfo>")
set(CMAKE_CUDA_STANDARD_REQUIRED ON)
set(CMAKE_CUDA_EXTENSIONS OFF)

add_library(Cuda::rt SHARED IMPORTED GLOBAL)
set_target_properties(Cuda::rt PROPERTIES
  IMPORTED_LOCATION "${TORCH_NVIDIA_DIR}/cu13/lib/libcudart.so.13"
  INTERFACE_INCLUDE_DIRECTORIES "${CMAKE_CUDA_TOOLKIT_INCLUDE_DIRECTORIES}")
# NCCL is opened when it is needed (cuda/collective/nccl_library.cpp): its header, and where programs find it.
add_library(Nccl::opened INTERFACE IMPORTED GLOBAL)
target_include_directories(Nccl::opened INTERFACE "${TORCH_NVIDIA_DIR}/nccl/include")
list(APPEND CMAKE_BUILD_RPATH "${TORCH_NVIDIA_DIR}/nccl/lib")
set(SATRAP_HAVE_CUDA ON)
message(STATUS "CUDA: ${_nvcc} ${CMAKE_CUDA_COMPILER_VERSION}, sm ${CMAKE_CUDA_ARCHITECTURES}")
