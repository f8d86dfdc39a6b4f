"""Runs numbered trials of a fault test, two at a time, and records them.

Each trial is a line of the results, written as it ends; the same command goes on with the trials that are missing.
"""

import argparse
import concurrent.futures
import json
import os
import pathlib
import subprocess
import sys
import threading

LIMIT = 600  # seconds after which a process that takes a few hangs


def ended(process):
    """Waits for a process with pipes and returns what it wrote to stderr. Throws if it hangs."""
    try:
        return process.communicate(timeout=LIMIT)[1]
    except subprocess.TimeoutExpired:
        process.kill()
        process.communicate()
        raise


def parser(description, count):
    """Returns the arguments that all fault tests share. `count`: trials in CI."""
    arguments = argparse.ArgumentParser(description=description, formatter_class=argparse.RawDescriptionHelpFormatter)
    arguments.add_argument("--build", default="build/release", help="directory of the build (default: build/release)")
    arguments.add_argument("--trials", type=int, default=count, help=f"number of trials (default: {count})")
    arguments.add_argument("--results", help="file of the trials' results; goes on if it has some")
    arguments.add_argument("--at-once", type=int, default=len(os.sched_getaffinity(0)), help="trials that run side by side")
    return arguments


def read_rows(results):
    """Returns the rows of a results file by the number of their trial."""
    if results is None or not results.exists():
        return {}
    rows = [json.loads(line) for line in results.read_text(encoding="utf-8").splitlines()]
    return {row["trial"]: row for row in rows}


def run(arguments, trial, what):
    """Runs `trial(number)`, which returns a dictionary with `problem`, "" if it passed, for each number that is missing.

    Prints "500 of 500 <what>" as the last line; `what` is a text, or a function of the rows. Returns the exit code.
    """
    results = pathlib.Path(arguments.results) if arguments.results else None
    rows = read_rows(results)
    lock = threading.Lock()

    def one(number):
        try:
            row = {"trial": number, **trial(number)}
        except (OSError, ValueError, LookupError, subprocess.SubprocessError) as error:
            row = {"trial": number, "problem": f"{type(error).__name__}: {error}"}
        with lock:
            rows[number] = row
            if row["problem"]:
                print(f"trial {number}: {row['problem']}", file=sys.stderr, flush=True)
            if results is not None:
                with results.open("a", encoding="utf-8") as file:
                    file.write(json.dumps(row) + "\n")

    missing = [number for number in range(arguments.trials) if number not in rows]
    with concurrent.futures.ThreadPoolExecutor(arguments.at_once) as pool:
        for _ in pool.map(one, missing):
            pass
    counted = [rows[number] for number in range(arguments.trials)]
    passed = sum(not row["problem"] for row in counted)
    print(f"{passed} of {len(counted)} {what if isinstance(what, str) else what(counted)}")
    return 0 if passed == len(counted) else 1


def scratch_directory():
    """A directory in memory, where a sync costs nothing."""
    return "/dev/shm" if os.path.isdir("/dev/shm") else None
