#!/usr/bin/env python3
"""How soon does delayed block proximal gradient reach the minimum, over delays, processes and learners?

    bench/sparse_processes.py --build build/release --python VENV/bin/python >sparse-processes.jsonl

Writes made-up rows with sparse_bench, and finds the least objective with sparse_reference.py (--python: one that has
scikit-learn), unless --reference gives it. Then `arbalest train` runs with every delay, number of processes (mpirun) and
learners of a process, in turns. A row is a JSON object for each of them: the epochs until the objective is at most 1e-4
above the least one, and the seconds that these epochs trained, in each turn. Reading, evaluation and the start of the
processes are not counted. `commit` is that of the program. Give every learner a core of its own.
"""

import argparse
import json
import os
import pathlib
import statistics
import subprocess
import sys
import tempfile

from launching import environment, launched

HERE = pathlib.Path(__file__).resolve().parent
JOB = """
name: "sparse-processes"
model {{ sparse_logistic {{}} }}
data {{ libsvm {{ directory: "." features: {features} }} }}
training {{ max_epochs: {epochs} }}
synchronization {{ delayed_proximal {{ blocks: {blocks} l1: {l1} tolerance: 0 }} }}
devices: "cpu"
"""


def call(*command, **options):
    """Returns stdout of a command that must succeed."""
    done = subprocess.run([str(word) for word in command], stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True,
                          check=False, **options)
    if done.returncode != 0:
        sys.exit(f"{' '.join(map(str, command))}: exit code {done.returncode}\n{done.stderr}")
    return done.stdout


def write_rows(options, directory):
    """Writes the training set, and a test set of its first rows."""
    shape = ["--rows", options.rows, "--features", options.features, "--entries", options.entries]
    call(options.build / "bench/sparse_bench", *shape, "write", directory / "train.libsvm")
    with open(directory / "train.libsvm", encoding="ascii") as file:
        first = [next(file) for _ in range(100)]
    (directory / "test.libsvm").write_text("".join(first), encoding="ascii")


def least_objective(options, directory):
    """The least objective that a solver of scikit-learn finds."""
    lines = call(options.python, HERE / "sparse_reference.py", directory / "train.libsvm", "--features", options.features,
                 "--l1", options.l1).splitlines()
    return min(json.loads(line)["objective"] for line in lines)


def train(options, directory, setting, output):
    """Trains once. Returns the epochs of the run."""
    command = [options.build / "arbalest", "train", "job.txtpb", "--quiet", "--data-root", ".", "--output", output,
               "--set", f"synchronization.delayed_proximal.max_delay={setting['max_delay']}",
               "--set", f"learners.per_device.fixed={setting['learners']}"]
    call(*launched(command, setting["processes"]), cwd=directory, env=environment())
    lines = (directory / output / "metrics.jsonl").read_text(encoding="utf-8").splitlines()
    return [row for row in map(json.loads, lines) if row["event"] == "epoch"]


def course_to(goal, epochs):
    """Returns what the first epoch has whose objective is at most `goal`, or the last one."""
    seconds = 0.0
    for row in epochs:
        seconds += row["training_seconds"]
        if row["objective"] <= goal:
            break
    return {"has_reached": row["objective"] <= goal, "epochs": row["epoch"], "objective": row["objective"]}, seconds


def measure(options, directory, settings, goal):
    """Adds the courses of all turns to the settings."""
    for turn in range(options.turns):
        for number, setting in enumerate(settings):
            epochs = train(options, directory, setting, f"run-{turn}-{number}")
            course, seconds = course_to(goal, epochs)
            setting.update(course)
            setting["seconds"].append(seconds)


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--build", type=lambda path: pathlib.Path(path).resolve(), default="build/release")
    parser.add_argument("--python", default=sys.executable, help="a Python with scikit-learn")
    parser.add_argument("--reference", type=float, help="the least objective; default: that of scikit-learn")
    parser.add_argument("--tolerance", type=float, default=1e-4, help="relative, above it")
    parser.add_argument("--rows", type=int, default=20000)
    parser.add_argument("--features", type=int, default=5000)
    parser.add_argument("--entries", type=int, default=40, help="numbers in a row")
    parser.add_argument("--l1", type=float, default=1e-3)
    parser.add_argument("--blocks", type=int, default=32)
    parser.add_argument("--delays", type=int, nargs="+", default=[0, 2, 4])
    parser.add_argument("--processes", type=int, nargs="+", default=[1, 2])
    parser.add_argument("--learners", type=int, nargs="+", default=[1, 2], help="of each process")
    parser.add_argument("--epochs", type=int, default=30, help="of a run, at most")
    parser.add_argument("--turns", type=int, default=3)
    options = parser.parse_args()
    commit = call(options.build / "arbalest", "--version").strip()
    settings = [{"max_delay": delay, "processes": processes, "learners": learners, "seconds": []}
                for delay in options.delays for processes in options.processes for learners in options.learners]
    with tempfile.TemporaryDirectory() as name:
        directory = pathlib.Path(name)
        write_rows(options, directory)
        (directory / "job.txtpb").write_text(
            JOB.format(features=options.features, epochs=options.epochs, blocks=options.blocks, l1=options.l1),
            encoding="utf-8")
        reference = options.reference or least_objective(options, directory)
        goal = reference * (1 + options.tolerance)
        measure(options, directory, settings, goal)
    for setting in settings:
        row = {"question": "time of delayed proximal gradient over processes to an objective", "commit": commit,
               "rows": options.rows, "features": options.features, "entries": options.entries, "l1": options.l1,
               "blocks": options.blocks, "reference": reference, "goal": goal, **setting,
               "above_reference": setting["objective"] / reference - 1,
               "median_seconds": statistics.median(setting["seconds"]), "load_average": os.getloadavg()[0]}
        print(json.dumps(row), flush=True)
        print(f"max_delay {setting['max_delay']}, {setting['processes']} processes, {setting['learners']} learners each: "
              f"{setting['epochs']} epochs, {row['median_seconds']:.3f} s", file=sys.stderr)


if __name__ == "__main__":
    main()
