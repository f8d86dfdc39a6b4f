"""Common parts of the tests that run `arbalest train` in several processes.

    PYTHONPATH=tests/faults python3 SOME_test.py PROGRAM ...
"""

import json
import pathlib
import sys
import unittest

import processes

PROGRAM = pathlib.Path(sys.argv[1]).resolve()


class ProcessCase(unittest.TestCase):
    """Its tests share a directory with the job and the runs."""

    @classmethod
    def setUpClass(cls):
        directory = processes.scratch()
        cls.addClassCleanup(directory.cleanup)
        cls.root = pathlib.Path(directory.name)

    @classmethod
    def write_job(cls, text, name="job.txtpb"):
        (cls.root / name).write_text(text, encoding="utf-8")

    @classmethod
    def summary(cls, output):
        return json.loads((cls.root / output / "summary.json").read_text(encoding="utf-8"))


def main(why_not=""):
    """Runs the tests of the program, unless they cannot run here: then they are skipped, and it says why."""
    reason = processes.missing(PROGRAM) or why_not
    if reason:
        print(f"skipped: {reason}")
        sys.exit(processes.SKIPPED)
    result = unittest.main(argv=sys.argv[:1], exit=False).result
    sys.exit(1 if not result.wasSuccessful() else processes.SKIPPED if result.skipped and not result.testsRun else 0)
