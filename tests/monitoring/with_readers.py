"""Runs a test of this folder with a Python that has the readers: the one below $ARBALEST_READERS, else this one.

Usage: with_readers.py NAME. Exits with 4, which CTest shows as skipped, if that Python lacks the readers.
"""

import os
import pathlib
import subprocess
import sys


def main():
    here = pathlib.Path(__file__).resolve().parent
    environment = os.environ.get("ARBALEST_READERS")
    python = pathlib.Path(environment, "bin", "python") if environment else sys.executable
    module = {"tensorboard_test": "tensorboard", "prometheus_test": "prometheus_client"}[sys.argv[1]]
    if environment and not python.exists():
        sys.exit(f"ARBALEST_READERS: '{environment}' is no Python environment; tests/monitoring/environment.sh makes one")
    if subprocess.run([python, "-c", f"import {module}"], stderr=subprocess.DEVNULL, check=False).returncode != 0:
        print(f"skipped: the Python package {module} is not installed (tests/monitoring/environment.sh)")
        sys.exit(4)
    os.execv(python, [str(python), "-B", str(here / f"{sys.argv[1]}.py")])


main()
