#!/usr/bin/env python3
"""Runs the fault tests at their sizes for CI, and prints a line for each of them: what was done to runs and checkpoints.

    make faults                                      # all of them, about five minutes on two cores
    tests/faults/scorecard.py --rows R4,R25          # some of them
    tests/faults/scorecard.py --rows R25 --factor 100    # Catch2 tests with 100 times the random cases

The scripts of this folder run longer campaigns; each takes a number of trials and a file of results, from which it goes
on. A test that cannot run here is reported as skipped, never as passed.
"""

import argparse
import os
import pathlib
import shutil
import subprocess
import sys
import tempfile

HERE = pathlib.Path(__file__).resolve().parent
SKIPPED = 4  # the exit code of a skipped test (tests/support/skip.h)

# A row is a script of this folder with its arguments, a Catch2 program with the names of its tests, or a pattern of ctest.
ROWS = {
    "R1": ("kills at random instants", ["kill_runs.py", "--kills", "20"]),
    "R1h": ("kills of one run for a long time", ["kill_loop.py", "--minutes", "0.5"]),
    "R2": ("kills at every system call of a save, a resumption and a deletion", ("checkpoint_faults_test", "killed at every call*")),
    "R3": ("system calls that fail, and a full disk", ("checkpoint_faults_test", "failing calls*")),
    "R3s": ("system calls of a run on its own directory that fail", ["start_faults.py", "--trials", "40"]),
    "R3k": ("kills at each system call of a run that goes on elsewhere", ["origin_kills.py", "--trials", "60"]),
    "R4": ("losses of power", ["power_loss.py", "--trials", "500"]),
    "R5": ("checkpoints that were cut off or changed", ("checkpoint_test", "damaged checkpoint*")),
    "R6": ("files of a run that are damaged, linked or unwritable", "run directory: |run faults: |best model"),
    "R12": ("runs cut and resumed at every round", ["cut_points.py"]),
    "R13": ("stops by signals at every stage", ["polite_stops.py", "--trials", "60"]),
    "R14": ("ranks that die in runs of four processes", ["dead_ranks.py", "--trials", "8"]),
    "R14h": ("networks between two hosts that are cut or slow", ["two_hosts.py"]),
    "R14u": ("processes on processors of different kinds", "process/unlike_hosts|unlike processes: |layout description: "),
    "R15": ("processes whose data differ in one example", "shared data: "),
    "R16": ("names from outside on terminals and in files", "names from outside: |safe text: "),
    "R22": ("memory, threads and files of a long run", ["soak.py"]),
    "R24": ("downloads from servers and archives that lie or attack", ["../fetch/cases.py"]),
    "R25": ("random sequences of saves, damage and retention", ("checkpoint_test", "checkpoints: random sequences*")),
}
NEED_STRACE = ("R3k", "R3s", "R4", "R13")
RANDOM_CASES = {"ARBALEST_FLIPPED_BITS": 100000, "ARBALEST_RETENTION_SEQUENCES": 1000}


def as_pattern(test):
    """The name of a Catch2 test as an argument: a comma and a bracket would mean something else."""
    return test.replace(",", "\\,").replace("[", "\\[")


def can_trace():
    """Whether strace is there and may trace processes."""
    if shutil.which("strace") is None:
        return False
    return subprocess.run(["strace", "-o", os.devnull, "true"], capture_output=True, check=False).returncode == 0


def run_script(words, build):
    where = ["--program", str(build / "arbalest")] if words[0] == "kill_runs.py" else ["--build", str(build)]
    done = subprocess.run(
        [sys.executable, "-B", str(HERE / words[0]), *where, *words[1:]], capture_output=True, text=True, check=False
    )
    lines = done.stdout.splitlines()
    return done.returncode, lines[-1] if lines else "", done.stderr


def run_tests(program, names, build, factor):
    """Runs each test case in a process of its own, as ctest does."""
    path = str(build / "tests/jobs" / program)
    listed = subprocess.run([path, "--list-test-names-only", names], capture_output=True, text=True, check=False)
    tests = [line.strip() for line in listed.stdout.splitlines() if line.strip()]
    code, errors, skipped = (0, "", 0) if tests else (1, f"{path} has no test '{names}'", 0)
    with tempfile.NamedTemporaryFile("r") as counts:
        environment = {**os.environ, "ARBALEST_FAULT_COUNTS": counts.name}
        environment.update({name: str(count * factor) for name, count in RANDOM_CASES.items()})
        for test in tests:
            done = subprocess.run([path, as_pattern(test)], env=environment, capture_output=True, text=True, check=False)
            skipped += done.returncode == SKIPPED
            if done.returncode not in (0, SKIPPED):
                code, errors = 1, errors + done.stdout + done.stderr
            elif done.returncode == SKIPPED:
                errors += f"{test}: {done.stdout.strip()}\n"
        faults = sum(int(line) for line in counts)
    text = f"{faults:,} cases in {len(tests) - skipped} tests" + (f", {skipped} tests skipped" if skipped else "")
    return code or (SKIPPED if skipped else 0), text, errors


def run_ctest(pattern, build):
    """Runs the tests whose names match the pattern."""
    command = ["ctest", "--test-dir", str(build), "-R", pattern, "--no-tests=error", "--output-on-failure"]
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    lines = [line for line in done.stdout.splitlines() if "tests passed" in line]
    skipped = done.returncode == 0 and "***Skipped" in done.stdout
    return SKIPPED if skipped else done.returncode, lines[-1] if lines else "", done.stdout + done.stderr


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--build", default="build/release", help="directory of the build (default: build/release)")
    parser.add_argument("--rows", default=",".join(ROWS), help="rows of the scorecard, such as R4,R25 (default: all)")
    parser.add_argument("--factor", type=int, default=1, help="multiplies the random cases of R5 and R25 (default: 1)")
    arguments = parser.parse_args()
    build = pathlib.Path(arguments.build).resolve()
    codes = []
    for row in arguments.rows.split(","):
        if row not in ROWS:
            parser.error(f"there is no row {row}: choose from {', '.join(ROWS)}")
        what, test = ROWS[row]
        if row in NEED_STRACE and not can_trace():
            code, text, errors = SKIPPED, "strace is missing or may not trace", ""
        elif isinstance(test, list):
            code, text, errors = run_script(test, build)
        elif isinstance(test, str):
            code, text, errors = run_ctest(test, build)
        else:
            code, text, errors = run_tests(*test, build, arguments.factor)
        status = {0: "passed", SKIPPED: "skipped in part"}.get(code, "FAILED")
        print(f"{row:4} {status:8} {what}: {text}", flush=True)
        if errors and code != 0:
            print(errors.rstrip(), file=sys.stderr, flush=True)
        codes.append(code)
    return 1 if any(code not in (0, SKIPPED) for code in codes) else 0


if __name__ == "__main__":
    sys.exit(main())
