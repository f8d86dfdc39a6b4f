"""Runs a test of this folder with the Python environment that $ARBALEST_ONNX names, else with this Python.

Usage: with_onnx.py NAME. A test exits with 4, which CTest shows as skipped, if its Python lacks a package. An environment
that is named must have ONNX and ONNX Runtime: then only tests that need more, such as PyTorch, may be skipped.
"""

import os
import pathlib
import subprocess
import sys


def main():
    environment = os.environ.get("ARBALEST_ONNX")
    python = pathlib.Path(environment, "bin", "python") if environment else pathlib.Path(sys.executable)
    if environment:
        if not python.exists():
            sys.exit(f"ARBALEST_ONNX: '{environment}' is no Python environment; tests/interchange/environment.sh makes one")
        subprocess.run([python, "-c", "import numpy, onnx, onnxruntime"], check=True)
    test = pathlib.Path(__file__).resolve().with_name(f"{sys.argv[1]}.py")
    os.execv(python, [str(python), "-B", str(test)])


main()
