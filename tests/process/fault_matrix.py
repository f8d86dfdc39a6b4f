#!/usr/bin/env python3
"""Runs a job under mpirun in which one rank has a fault, and checks how the other ranks end.

    tests/process/fault_matrix.py --build build/release            # all rows, about 90 seconds
    tests/process/fault_matrix.py --build build/release --small    # the rows of CI

The faults: a rank is killed, stops, crashes, exits, or throws an exception. It does so at the start, inside an
all-reduce when the n-th part has arrived, or at the end. mpirun either ends the other ranks when one dies ("ends"), or it
lets them go on ("survives"), so that they must notice the death themselves. Each run writes a row:

    fault  instant  victim  launcher  exit code of mpirun  ranks that name the victim  seconds  verdict

In every run the job must end within the limit, no process may be left, and no survivor may use a wrong sum. A survivor
that ends by itself does so with exit code 8 and names the victim with its host. A rank with an error of its own ends all
with its own exit code, 7.
"""

import argparse
import concurrent.futures
import os
import pathlib
import re
import shutil
import socket
import subprocess
import sys
import tempfile
import time

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parents[1] / "faults"))
import processes  # noqa: E402

SKIPPED = 4  # exit code of a skipped test (tests/support/skip.h)
LIMIT = 60  # seconds; a run takes a few
FAULTS = ("kill", "stop", "segfault", "exit", "exception")
INSTANTS = ("start", "1", "4", "9", "end")
ENDS = "ends"  # mpirun ends all ranks when one dies
SURVIVE = "survives"  # mpirun lets the others go on


def launchers(fault):
    """Returns the behaviors of mpirun that are tested. It does not notice a stopped rank, and would never end it."""
    return (ENDS,) if fault in ("stop", "exception") else (ENDS, SURVIVE)


def rows(small):
    """Returns the fault, instant, number of ranks, victim and launcher of each run."""
    if small:
        return [
            ("kill", "1", 3, 0, SURVIVE),
            ("segfault", "4", 4, 2, SURVIVE),
            ("exit", "9", 3, 1, SURVIVE),
            ("stop", "4", 4, 3, ENDS),
            ("stop", "start", 3, 0, ENDS),
            ("exception", "1", 3, 2, ENDS),
            ("exception", "end", 3, 0, ENDS),
            ("kill", "end", 3, 1, ENDS),
            ("exit", "start", 3, 2, ENDS),
        ]
    found = []
    for fault in FAULTS:
        for instant in INSTANTS:
            for launcher in launchers(fault):
                ranks = 3 + len(found) % 2
                found.append((fault, instant, ranks, len(found) // 2 % ranks, launcher))
    return found


def problem_of(fault, victim, ranks, launcher, code, text):
    """Returns the number of ranks that name the victim, and what is wrong with the end of the run, or nothing."""
    names = len(re.findall(rf"^arbalest: error: rank {victim} on host {re.escape(socket.gethostname())} ", text, re.M))
    blamed = {int(rank) for rank in re.findall(r"^arbalest: error: rank (\d+) on host", text, re.M)}
    if "a sum is wrong" in text:
        return names, "a survivor used a wrong sum"
    if blamed - {victim}:
        return names, f"the wrong rank is named: {blamed}"
    if fault == "exception":
        if code != 7 or "an exception of its own" not in text:
            return names, "the rank's own error is lost"
        # The rank itself has named the reason. It gives the others a second to name it, too, which a loaded machine may
        # need for one of them.
        return names, "" if names > 0 else "no survivor names the victim"
    if fault == "stop" or launcher == SURVIVE:
        if names != ranks - 1:
            return names, "not all survivors name the victim"
        if launcher == ENDS:
            return names, "" if code == 8 else "the exit code is not 8"
        return names, "" if "ends all processes with 8" in text else "no survivor ends with 8"
    # Even after exit 0: the rank had not finished MPI.
    return names, "" if code != 0 else "mpirun reports success"


def run(build, mpirun, row):
    """Runs one job. Returns its row of the table and what is wrong."""
    fault, instant, ranks, victim, launcher = row
    with tempfile.TemporaryDirectory() as home:
        command = [mpirun, "-np", str(ranks), "--allow-run-as-root", "--oversubscribe", "--bind-to", "none"]
        if launcher == SURVIVE:
            command.append("--enable-recovery")
        token = f"run={home}"  # marks the processes of this run
        command += [str(build / "tests/process/fault_program"), str(build), fault, instant, str(victim), token]
        environment = {"PATH": "/usr/bin:/bin", "HOME": home, "OMPI_MCA_orte_base_help_aggregate": "0"}
        begin = time.monotonic()
        try:
            ended = subprocess.run(command, env=environment, cwd=home, capture_output=True, text=True, errors="replace",
                                   timeout=LIMIT, check=False)
            code, text = ended.returncode, ended.stderr
            names, problem = problem_of(fault, victim, ranks, launcher, code, text)
        except subprocess.TimeoutExpired as error:
            code, names, problem = -1, 0, f"it hangs: {(error.stderr or b'').decode(errors='replace')}"
            text = problem
        seconds = time.monotonic() - begin
        for process in processes.left_over(token):
            problem = problem or "a process is left"
            os.kill(process, 9)
    place = instant if instant in ("start", "end") else f"part {instant}"
    line = f"{fault}\t{place}\t{victim} of {ranks}\t{launcher}\t{code}\t{names}\t{seconds:.1f}\t{problem or 'good'}"
    return line, problem, text


def main():
    """Runs all rows."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--build", default="build/release", help="directory of the build (default: build/release)")
    parser.add_argument("--mpirun", default=shutil.which("mpirun") or "", help="mpirun of Open MPI")
    parser.add_argument("--small", action="store_true", help="only a few rows")
    parser.add_argument("--at-once", type=int, default=2, help="runs that run side by side (default: 2)")
    arguments = parser.parse_args()
    build = pathlib.Path(arguments.build).resolve()
    if not arguments.mpirun or not (build / "libarbalest_mpi.so").exists():
        print("skipped: no mpirun, or a build without MPI")
        return SKIPPED
    version = subprocess.run([arguments.mpirun, "--version"], capture_output=True, text=True, check=False).stdout
    if "Open MPI" not in version and "OpenRTE" not in version:
        print("skipped: only the mpirun of Open MPI tells what it must")
        return SKIPPED
    failed = 0
    print("fault\tinstant\tvictim\tlauncher\texit\tnamed by\tseconds\tverdict", flush=True)
    table = rows(arguments.small)
    with concurrent.futures.ThreadPoolExecutor(arguments.at_once) as pool:
        for line, problem, text in pool.map(lambda row: run(build, arguments.mpirun, row), table):
            print(line, flush=True)
            if problem:
                failed += 1
                print(text, file=sys.stderr)
    print(f"{len(table) - failed} of {len(table)} runs ended as they must")
    return 1 if failed else 0


if __name__ == "__main__":
    sys.exit(main())
