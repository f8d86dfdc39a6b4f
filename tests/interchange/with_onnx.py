"""Runs a test of this folder with the Python environment that a variable names, else with this Python.

Usage: with_onnx.py NAME VARIABLE. A test exits with 4, which CTest shows as skipped, if its Python lacks a package. An
environment that is named must have the packages below: then only tests that need more, such as PyTorch, may be skipped.
"""

import os
import pathlib
import subprocess
import sys

# For each variable, the script that makes the environment, and packages.
ENVIRONMENTS = {
    "ARBALEST_ONNX": ("environment.sh", "numpy, onnx, onnxruntime"),
    "ARBALEST_TENSORFLOW": ("tensorflow_environment.sh", "numpy, tensorflow, tf2onnx"),
}


def main():
    name, variable = sys.argv[1:]
    script, packages = ENVIRONMENTS[variable]
    environment = os.environ.get(variable)
    python = pathlib.Path(environment, "bin", "python") if environment else pathlib.Path(sys.executable)
    if environment:
        if not python.exists():
            sys.exit(f"{variable}: '{environment}' is no Python environment; tests/interchange/{script} makes one")
        subprocess.run([python, "-c", f"import {packages}"], check=True)
    test = pathlib.Path(__file__).resolve().with_name(f"{name}.py")
    os.execv(python, [str(python), "-B", str(test)])


main()
