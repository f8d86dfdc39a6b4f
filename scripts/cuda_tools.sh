#!/usr/bin/env bash
# Installs cuobjdump and nvdisasm below build/cuda-tools if the CUDA toolkit lacks them (tests/cuda/kernel_facts.py).
# Does nothing if both are on the PATH or already installed there. Exits 1 if they cannot be installed. Tests that need
# them are skipped.
set -euo pipefail
cd "$(dirname "${BASH_SOURCE[0]}")/.."

say() { printf 'cuda_tools: %s\n' "$*" >&2; }

on_path() { command -v cuobjdump >/dev/null && command -v nvdisasm >/dev/null; }
installed() { [ -n "$(find build/cuda-tools -name nvdisasm -perm -u+x -print -quit 2>/dev/null)" ]; }

if on_path || installed; then exit 0; fi
say "installing cuobjdump and nvdisasm with pip"
mkdir -p build
log=build/cuda-tools.log
if ! { python3 -m venv build/cuda-tools &&
  build/cuda-tools/bin/pip install --quiet 'nvidia-cuda-cuobjdump==13.*' 'nvidia-cuda-nvdisasm==13.*'; } >"$log" 2>&1; then
  tail -n 3 "$log" >&2
  say "they cannot be installed; the test cuda/kernel_facts will be skipped"
  exit 1
fi
