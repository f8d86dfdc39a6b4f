#!/usr/bin/env bash
# Compares Arbalest with PyTorch, TensorFlow and JAX on this machine: speed in turns, and time to an accuracy (see
# compare.py --help).
#
#   bench/peers/environment.sh build/peers && bench/compare.sh [--quick] [--model lenet]... [--seeds 1..3] [--output DIR]
command -v python3 >/dev/null || { echo "$0: python3 is not installed" >&2; exit 2; }
exec python3 "$(dirname "${BASH_SOURCE[0]}")/compare.py" "$@"
