#!/usr/bin/env bash
# Makes a Python environment with the peers: PyTorch, and TensorFlow and JAX if they can be installed.
#
#   bench/peers/environment.sh DIR       # then: bench/compare.sh --peers DIR
#
# The environment is not needed to build, test or run Arbalest. Exit codes: 0 PyTorch is installed, 1 PyTorch cannot be
# installed, 2 usage, or DIR exists.
set -euo pipefail

PYTORCH=torch==2.15.0
NUMPY=numpy==2.4.6
TENSORFLOW=tensorflow-cpu==2.21.0
JAX=jax==0.10.2

if [ $# -ne 1 ]; then
  sed -n '2,7s/^# \{0,1\}//p' "$0" >&2
  exit 2
fi
if [ -e "$1" ]; then
  echo "$0: '$1' is there already; name a new directory" >&2
  exit 2
fi
python3 -m venv "$1"
if ! "$1/bin/python" -m pip install --quiet --disable-pip-version-check "$PYTORCH" "$NUMPY"; then
  echo "$0: $PYTORCH cannot be had: no peers here" >&2
  rm -rf -- "$1"
  exit 1
fi
for peer in "$TENSORFLOW" "$JAX"; do
  if ! "$1/bin/python" -m pip install --quiet --disable-pip-version-check "$peer" "$NUMPY"; then
    echo "$0: $peer cannot be had here; comparisons will say that they skip it" >&2
  fi
done
"$1/bin/python" -m pip list --disable-pip-version-check 2>/dev/null | grep -i -E '^(torch|tensorflow|jax|numpy)' || true
