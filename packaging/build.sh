#!/usr/bin/env bash
# Builds the packages for CPUs: the wheel and the Debian package. `packaging/build.sh OUT` leaves them in OUT, whose older
# packages are removed. Needs Python 3.9 with pip and venv, dpkg-dev, and what scripts/packages.txt lists.
set -euo pipefail

[ $# -eq 1 ] || { sed -n '2,3s/^# //p' "$0" >&2; exit 2; }
mkdir -p "$1"
out=$(cd "$1" && pwd)
cd "$(dirname "${BASH_SOURCE[0]}")/.."
rm -f "$out"/*.whl "$out"/*.deb

say() { printf 'packages: %s\n' "$*"; }

# The compiler's usual name in CMake's builds, so that they share a compiler cache.
export CXX=${CXX:-c++}
say 'the wheel'
python3 -m pip wheel . --quiet --no-deps --wheel-dir "$out"

say 'the Debian package'
cmake -S . -B build/debian -G Ninja -DCMAKE_BUILD_TYPE=Release -DCMAKE_UNITY_BUILD=ON -DCMAKE_UNITY_BUILD_BATCH_SIZE=10 -DARBALEST_CUDA=OFF -DBUILD_TESTING=OFF \
  -DARBALEST_BUILD_BENCH=OFF -DARBALEST_LAYOUT=SYSTEM >build/debian-configure.log 2>&1 \
  || { cat build/debian-configure.log >&2; exit 1; }
cmake --build build/debian
(cd build/debian && cpack -B "$out" >"$out/cpack.log") || { cat "$out/cpack.log" >&2; exit 1; }
rm -rf "$out/_CPack_Packages" "$out/cpack.log"
ls -l "$out"
