#!/bin/bash
# Installs what satrap needs on Debian 12 or Ubuntu 24.04, as root or with sudo:
#   launch/setup.sh run    compiler, libraries, and .venv with the wheels that programs run with
#   launch/setup.sh cuda   also what a build with CUDA needs: nvcc 13.0 and the libraries of torch, as wheels
#   launch/setup.sh test   also clang-format, clang-tidy and a browser; cuda/ is compiled on every machine that tests
# Only what is missing is installed: run again, it does nothing and needs no network.
set -euo pipefail
cd "$(dirname "$0")/.."

torch=2.11.0
packages=(g++ cmake ninja-build ccache git ca-certificates python3 python3-venv
  libbenchmark-dev libcli11-dev libfmt-dev libgloo-dev libgmock-dev libgtest-dev libspdlog-dev libxxhash-dev
  libyaml-cpp-dev libzstd-dev nlohmann-json3-dev zlib1g-dev)
test_packages=(clang-format-19 clang-tidy-19 gzip zstd)
# A browser for tests/app/report_test.py. Ubuntu has it as a snap only; there that test looks for others.
! grep -q '^ID=debian' /etc/os-release || test_packages+=(chromium)
# What libtorch_cpu.so is linked with, and no more: enough for C++ programs, not for Python.
run_wheels=("torch==$torch" nvidia-cuda-runtime==13.0.96 nvidia-cuda-cupti==13.0.85)
test_wheels=("torch==$torch" numpy==2.4.6 tensorboard==2.21.0)
# All five by number: cuda-nvcc alone would take the newest crt and nvvm, which do not fit it.
cuda_wheels=(nvidia-cuda-nvcc==13.0.88 nvidia-cuda-crt==13.0.88 nvidia-nvvm==13.0.88
  nvidia-cuda-runtime==13.0.96 nvidia-cuda-cccl==13.0.85)

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

# install_packages NAME...: those of them that dpkg does not list as installed.
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

# install_wheels NAME PIP-ARGUMENT...: into .venv, once; a stamp named after the arguments says done.
install_wheels() {
  local name=$1
  shift
  local stamp=".venv/.satrap-$name"
  [ "$(cat "$stamp" 2> /dev/null)" != "$*" ] || return 0
  [ -x .venv/bin/pip ] || python3 -m venv .venv
  say "wheels: $*"
  .venv/bin/pip install -q --disable-pip-version-check "$@" >&2
  echo "$*" > "$stamp"
}

mode=${1:-run}
command -v dpkg-query > /dev/null || die "only Debian 12 and Ubuntu 24.04 are supported"
case $mode in
  run)
    install_packages "${packages[@]}"
    # The set for tests contains the set for running.
    [ "$(cat .venv/.satrap-test 2> /dev/null)" = "${test_wheels[*]}" ] ||
      install_wheels run --no-deps "${run_wheels[@]}"
    ;;
  cuda | test)
    [ "$mode" = cuda ] || packages+=("${test_packages[@]}")
    install_packages "${packages[@]}"
    install_wheels test "${test_wheels[@]}"
    install_wheels cuda --no-deps "${cuda_wheels[@]}"
    ;;
  *) die "usage: launch/setup.sh [run|cuda|test]" ;;
esac
