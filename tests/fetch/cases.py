#!/usr/bin/env python3
"""Runs all cases of servers and archives that lie or attack, and prints how many passed.

    tests/fetch/cases.py --build build/release
"""

import argparse
import os
import pathlib
import sys
import unittest


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--build", default="build/release", help="directory of the build (default: build/release)")
    build = pathlib.Path(parser.parse_args().build).resolve()
    os.environ["ARBALEST_PROGRAM"] = str(build / "arbalest")
    os.environ["ARBALEST_FETCH_PROBE"] = str(build / "tests" / "fetch" / "fetch_probe")
    os.environ["no_proxy"] = "*"
    sys.path.insert(0, str(pathlib.Path(__file__).resolve().parent))
    cases = unittest.defaultTestLoader.loadTestsFromNames(["transfer_test", "archive_test"])
    result = unittest.TextTestRunner(sys.stderr, verbosity=0).run(cases)
    bad = len(result.failures) + len(result.errors)
    skipped = len(result.skipped)
    print(f"{result.testsRun - bad - skipped} of {result.testsRun} cases" + (f", {skipped} skipped" if skipped else ""))
    return 0 if result.wasSuccessful() and skipped == 0 else 1 if bad else 4


if __name__ == "__main__":
    sys.exit(main())
