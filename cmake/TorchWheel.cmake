# Torch::cpu, and Torch::cuda if the full set of wheels is installed, from the PyPI wheel.
# find_package(Torch) is not used: it fails without a CUDA toolkit and forces its own CUDA flags.
# TORCH_DIR is .../site-packages/torch; by default that of .venv in the checkout (launch/setup.sh).
set(SATRAP_TORCH_VERSION 2.11.0)
set(TORCH_DIR "" CACHE PATH "site-packages/torch of the wanted wheel; empty: the one in .venv")
set(_torch_dir "${TORCH_DIR}")
if(NOT _torch_dir)
  file(GLOB _torch_dir "${PROJECT_SOURCE_DIR}/.venv/lib/python3*/site-packages/torch")
endif()
if(NOT EXISTS "${_torch_dir}/lib/libtorch_cpu.so")
  message(FATAL_ERROR "libtorch ${SATRAP_TORCH_VERSION} not found in '${_torch_dir}'; "
    "run ./launch/setup.sh, or pass -DTORCH_DIR=.../site-packages/torch")
endif()
file(STRINGS "${_torch_dir}/version.py" _torch_version REGEX "^__version__")
if(NOT _torch_version MATCHES "'${SATRAP_TORCH_VERSION}")
  message(FATAL_ERROR "torch ${SATRAP_TORCH_VERSION} wanted in ${_torch_dir}, got: ${_torch_version}")
endif()
cmake_path(GET _torch_dir PARENT_PATH _torch_site)
set(TORCH_NVIDIA_DIR "${_torch_site}/nvidia")

function(_torch_library target file)
  add_library(${target} SHARED IMPORTED GLOBAL)
  set_target_properties(${target} PROPERTIES
    IMPORTED_LOCATION "${_torch_dir}/lib/lib${file}.so"
    INTERFACE_INCLUDE_DIRECTORIES "${_torch_dir}/include;${_torch_dir}/include/torch/csrc/api/include")
endfunction()
_torch_library(Torch::c10 c10)
_torch_library(Torch::cpu torch_cpu)
# libtorch's OpenMP, which the module dense limits to one thread.
target_link_libraries(Torch::cpu INTERFACE Torch::c10 "${_torch_dir}/lib/libgomp.so.1")
if(EXISTS "${TORCH_NVIDIA_DIR}/cudnn/lib/libcudnn.so.9")
  _torch_library(Torch::c10_cuda c10_cuda)
  _torch_library(Torch::torch_cuda torch_cuda)
  add_library(Torch::cuda INTERFACE IMPORTED GLOBAL)
  # libtorch_cuda only registers kernels: no symbol pulls it in, so --as-needed would drop it.
  target_link_libraries(Torch::cuda INTERFACE Torch::cpu Torch::c10_cuda
    "-Wl,--push-state,--no-as-needed" Torch::torch_cuda "-Wl,--pop-state")
endif()
message(STATUS "libtorch: ${_torch_dir}")
