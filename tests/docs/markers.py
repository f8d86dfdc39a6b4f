"""The marks of a code block, and its requirements that this machine may not meet."""

import importlib.util
import os
import pathlib

from markdown import PageError

MARKS = {
    "long": "checked, but run only with ARBALEST_DOCS_LONG=1",
    "exit": "the exit code of the block's only command; else 0",
    "needs": "what must be there, separated by commas: a data set below $ARBALEST_DATA, gpu, numpy, cores4",
    "job": "the job file whose fields a fragment replaces; else configs/lenet-digits.txtpb",
    "file": "the block is a file of this name; the commands after it may read it",
    "excerpt": "the file in which every line of the block stands",
}
LANGUAGES = {
    "sh": "commands, run one after the other in one shell for the whole page",
    "textproto": "a job file, or fields of one, which `arbalest validate` must accept",
    "text": "what a program prints, or a formula: not checked",
    "cpp": "an excerpt of a source file, which the mark excerpt names",
    "cmake": "the same of a CMakeLists.txt",
}
EXCERPTS = ("cpp", "cmake")


def check(block):
    for mark, value in block.marks.items():
        if mark not in MARKS:
            raise PageError(f"{block.place}: no mark is called {mark}; there are {', '.join(MARKS)}")
        if (mark == "long") == bool(value):
            raise PageError(f"{block.place}: the mark {mark} needs {'no' if mark == 'long' else 'a'} value")
    if "exit" in block.marks and not block.marks["exit"].isdigit():
        raise PageError(f"{block.place}: exit={block.marks['exit']} is no exit code")
    if (block.language in EXCERPTS) != ("excerpt" in block.marks):
        raise PageError(
            f"{block.place}: a block of {' or '.join(EXCERPTS)} needs the mark excerpt=FILE, and no other may have it"
        )
    if block.language and block.language not in LANGUAGES:
        raise PageError(
            f"{block.place}: a block of '{block.language}' is not checked; the languages are {', '.join(LANGUAGES)}"
        )


def missing(block):
    """Returns a requirement of the block that this machine does not meet, or "" if there is none."""
    for need in filter(None, block.marks.get("needs", "").split(",")):
        if need.startswith("cores"):
            found = len(os.sched_getaffinity(0)) >= int(need.removeprefix("cores"))
        elif need == "numpy":
            found = importlib.util.find_spec("numpy") is not None
        elif need == "gpu":
            found = pathlib.Path("/dev/nvidiactl").exists()
        else:
            data = os.environ.get("ARBALEST_DATA", "")
            found = bool(data) and (pathlib.Path(data) / need).is_dir()
        if not found:
            return need
    return ""
