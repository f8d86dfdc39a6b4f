"""The program that the package brings."""

import os
import pathlib
import sys

_TREE = pathlib.Path(__file__).resolve().parent / "tree"


class ProgramError(RuntimeError):
    """The program ended with an error. `exit_code` says of which kind (arbalest --help); a negative one is a signal."""

    def __init__(self, message, exit_code):
        super().__init__(message)
        self.exit_code = exit_code


def program_path():
    """Returns the path of the program."""
    return _TREE / "bin" / "arbalest"


def configs():
    """Returns the folder of the job files that come with the program."""
    return _TREE / "configs"


def environment():
    """Returns the environment in which the program finds CUDA's libraries of NVIDIA's packages, if they are there."""
    folders = sorted(str(folder) for folder in (_TREE.parents[1] / "nvidia").glob("*/lib"))
    if not folders:
        return dict(os.environ)
    before = os.environ.get("LD_LIBRARY_PATH")
    return {**os.environ, "LD_LIBRARY_PATH": os.pathsep.join(folders + ([before] if before else []))}


def main():
    """Replaces this process by the program, with the same arguments."""
    os.execve(program_path(), ["arbalest", *sys.argv[1:]], environment())
