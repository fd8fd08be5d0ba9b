#!/bin/bash
# Tests the newest commit of this checkout on the users' systems, each time on a fresh system in a temporary folder
# (made by debootstrap, so this needs Debian or Ubuntu, root, a network, and 12 GiB):
#   tests/systems.sh [debian12|debian13|clang|gcc13|arm64]...      (default: debian13 arm64 clang)
# debian12, debian13: README's first command, then the release tests. clang, gcc13: the same on Debian 13 with clang 19
# or GCC 13. arm64: a Debian 12 for aarch64 under qemu, set up by launch/setup.sh, with programs compiled outside it:
# README's job, the C++ tests of all modules, and the same bits as on x86-64. Warnings are errors.
# The last line counts the tests of all systems. Packages come from the sources of this machine. SATRAP_STAGES: the
# stages of tests/run.sh to run instead of release. CCACHE_DIR: where compilers keep their results. SATRAP_KEEP: keeps
# the folders.
set -uo pipefail
cd "$(dirname "$0")/.."

checkout=$PWD
scratch=$(mktemp -d "${TMPDIR:-/tmp}/satrap-systems-XXXXXX")
qemu_rule=/proc/sys/fs/binfmt_misc/satrap-aarch64
qemu_seconds=1800              # for one test program under qemu
qemu_leaves_out='-*LargeModel*:*HundredThousand*'  # these take half an hour there
passed=0 failed=0 skipped=0

say() { echo "=== $*"; }

unmount_all() {
  local path
  while read -r path; do umount -l "$path"; done < <(cut -d' ' -f2 /proc/mounts | grep "^$scratch/" | sort -r)
}

clean_up() {
  [ ! -e "$qemu_rule" ] || echo -1 > "$qemu_rule"
  unmount_all
  if [ -n "${SATRAP_KEEP:-}" ]; then say "kept: $scratch"; else rm -rf --one-file-system "$scratch"; fi
}
trap clean_up EXIT
trap 'exit 130' INT TERM

# fresh_system ROOT SUITE [ARCHITECTURE]: a minimal Debian with this machine's sources of packages, which cannot
# resolve its own name, as containers often cannot.
fresh_system() {
  local root=$1 suite=$2 sources=/etc/apt/sources.list.d/debian.sources arch
  arch=${3:-$(dpkg --print-architecture)}
  say "$suite for $arch"
  debootstrap --variant=minbase --arch="$arch" "$suite" "$root" \
    "$(sed -n 's/^URIs: *//p' "$sources" | head -1)" > "$root.log" 2>&1 || { tail "$root.log"; return 1; }
  sed "s/$(. /etc/os-release && echo "$VERSION_CODENAME")/$suite/g" "$sources" > "$root$sources"
  rm -f "$root/etc/apt/sources.list"
  cp /etc/resolv.conf "$root/etc/"
  echo "127.0.0.1 localhost" > "$root/etc/hosts"
  mkdir -p "$root/root/.ccache" "$root/root/satrap"
  cp /etc/ssl/certs/ca-certificates.crt "$root/root/certificates.crt"  # a proxy's certificate may be among them
  [ ! -f /etc/pip.conf ] || cp /etc/pip.conf "$root/etc/"
  mount --bind "$root" "$root" && mount --make-private "$root" || return  # a mount of its own, as containers have
  mount -t proc proc "$root/proc" && mount --rbind /dev "$root/dev" && mount --rbind /sys "$root/sys" &&
    mount --make-rslave "$root/dev" && mount --make-rslave "$root/sys" || return
  [ -z "${CCACHE_DIR:-}" ] || mount --bind "$CCACHE_DIR" "$root/root/.ccache" || return
  git clone -q "$checkout" "$root/root/satrap"
}

# inside ROOT COMMAND: runs a shell command in the checkout of a system, with the variables in $settings.
settings=()
inside() {
  local proxies=()
  mapfile -t proxies < <(env | grep -i '_proxy=')
  chroot "$1" /usr/bin/env -i HOME=/root PATH=/usr/sbin:/usr/bin:/sbin:/bin LC_ALL=C.UTF-8 SATRAP_WERROR=ON \
    CCACHE_DIR=/root/.ccache PIP_CERT=/root/certificates.crt DEBIAN_FRONTEND=noninteractive \
    "${proxies[@]}" "${settings[@]}" bash -c "cd /root/satrap && $2" < /dev/null
}

install_in() {
  local root=$1
  shift
  inside "$root" "apt-get update -q && apt-get install -y -q --no-install-recommends $*" > "$root.log" 2>&1 ||
    { tail "$root.log"; return 1; }
}

count() {
  passed=$((passed + ${1:-0})) failed=$((failed + ${2:-1})) skipped=$((skipped + ${3:-0}))
}

# quickstart_and_tests ROOT: runs README's first command and the tests.
quickstart_and_tests() {
  local log=$1.tests stages=${SATRAP_STAGES:-release}
  say "./launch/quickstart.sh"
  SECONDS=0
  inside "$1" ./launch/quickstart.sh || return
  say "quickstart: $SECONDS s; ./tests/run.sh $stages"
  inside "$1" "./tests/run.sh $stages" 2>&1 | tee "$log"
  count $(sed -n '$s/\([0-9]*\) passed, \([0-9]*\) failed, \([0-9]*\) skipped/\1 \2 \3/p' "$log")
}

# on_debian SUITE [COMPILER PACKAGE...]
on_debian() {
  local root=$scratch/$1 compiler=${2:-}
  settings=()
  fresh_system "$root" "$1" || return
  if [ -n "$compiler" ]; then
    install_in "$root" "${@:3}" || return
    settings=("CXX=$compiler")
    # This system's libraries need its own libstdc++, which programs run with. An older GCC would link with its own
    # older one.
    if [[ $compiler = g++-* ]]; then
      inside "$root" 'mkdir -p /root/lib && ln -s /usr/lib/*-linux-gnu/libstdc++.so.6 /root/lib/libstdc++.so' || return
      settings+=("LDFLAGS=-L/root/lib")
    fi
  fi
  quickstart_and_tests "$root"
}

# The kernel runs programs for aarch64 by itself, also in other roots (flag F: qemu is opened now).
register_qemu() {
  [ "$(uname -m)" != aarch64 ] || return 0
  [ -e /proc/sys/fs/binfmt_misc/register ] || mount -t binfmt_misc binfmt_misc /proc/sys/fs/binfmt_misc || return
  ! grep -qs '^enabled' /proc/sys/fs/binfmt_misc/qemu-aarch64 || return 0
  local magic='\x7fELF\x02\x01\x01\x00\x00\x00\x00\x00\x00\x00\x00\x00\x02\x00\xb7\x00'
  local mask='\xff\xff\xff\xff\xff\xff\xff\x00\xff\xff\xff\xff\xff\xff\xff\xff\xfe\xff\xff\xff'
  echo ":satrap-aarch64:M::$magic:$mask:$1:F" > /proc/sys/fs/binfmt_misc/register
}

# The compiler runs in a root of this machine's architecture and uses the other system as its sysroot. The checkout is
# at the same path in both.
on_arm64() {
  local builder=$scratch/builder target=$scratch/target
  settings=()
  fresh_system "$builder" bookworm || return
  install_in "$builder" cmake ninja-build ccache g++-aarch64-linux-gnu protobuf-compiler qemu-user-static python3 || return
  register_qemu "$builder/usr/bin/qemu-aarch64-static" || return
  fresh_system "$target" bookworm arm64 || return
  say "./launch/setup.sh run, under qemu"
  inside "$target" "./launch/setup.sh run" > "$target.log" 2>&1 || { tail "$target.log"; return 1; }
  mkdir "$builder/target"
  mount --bind "$target" "$builder/target" && mount --bind "$target/root/satrap" "$builder/root/satrap" || return
  say "cross build"
  inside "$builder" "cmake --preset release -DCMAKE_TOOLCHAIN_FILE=tests/support/aarch64.cmake > build.log &&
    cmake --build --preset release -- --quiet" || return
  say "tests under qemu"
  inside "$target" "build/release/bin/satrap doctor"
  count $(inside "$target" "GTEST_FILTER='$qemu_leaves_out' python3 tests/support/run_programs.py $qemu_seconds \
    \$(find build/release/tests -name '*_tests' -type f -perm -u+x | sort)")
  if inside "$target" "SATRAP_BIN=\$PWD/build/release/bin/satrap python3 tests/process/portable_bits_test.py"; then
    count 1 0 0
  else
    count 0 1 0
  fi
}

[ "$(id -u)" = 0 ] || { echo "systems: needs root, for debootstrap and chroot" >&2; exit 1; }
command -v debootstrap > /dev/null || apt-get install -y -q debootstrap > /dev/null || exit 1
[ $# -gt 0 ] || set -- debian13 arm64 clang
for system in "$@"; do
  started=$(date +%s)
  say "$system"
  case $system in
    debian12) on_debian bookworm ;;
    debian13) on_debian trixie ;;
    clang) on_debian trixie clang++-19 clang-19 ;;
    gcc13) on_debian trixie g++-13 g++-13 ;;
    arm64) on_arm64 ;;
    *)
      echo "usage: tests/systems.sh [debian12|debian13|clang|gcc13|arm64]..." >&2
      exit 2
      ;;
  esac || { say "$system: failed"; count 0 1 0; }
  say "$system: $(($(date +%s) - started)) s; so far $passed passed, $failed failed, $skipped skipped"
  unmount_all
  [ -n "${SATRAP_KEEP:-}" ] || rm -rf --one-file-system "${scratch:?}"/*
done
echo
echo "$passed passed, $failed failed, $skipped skipped"
[ "$failed" = 0 ] && [ "$passed" != 0 ]
