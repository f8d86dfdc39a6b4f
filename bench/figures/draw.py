#!/usr/bin/env python3
"""Draws the paper's figures from our runs, as SVG on stdout.

    draw.py gain BENCH.json...                throughput gain of many learners over batch size
    draw.py time BENCH.json...                time to accuracy over batch size

bench.json comes from `arbalest bench --vary training.batch_size=... --vary learners.per_device.fixed=...`. With several
files, a case replaces the case of the same batch size and learners in earlier files. --learners and --batch-size select
cases. --note says how the recipes of these files differ. Exit codes: 0 done, 2 the files lack what a figure needs.
"""

import argparse
import json
import pathlib
import sys

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parents[1]))
from figures.chart import Axis, line_chart  # noqa: E402


class NothingToDraw(Exception):
    """The files lack what the figure shows."""


class Case:
    """Runs of one batch size and number of learners."""

    def __init__(self, case, target):
        runs = [run for run in case["runs"] if "learners" in run]
        self.batch_size, self.target = case["batch_size"], target
        self.learners = runs[0]["learners"] if runs else None
        self.images_per_second = case["images_per_second"]["median"]
        self.seconds = case["time_to_accuracy_seconds"]["median"]

    def place(self):
        return self.batch_size, self.learners


def read(path):
    """Returns the cases of the file."""
    try:
        bench = json.loads(pathlib.Path(path).read_text())
        return [Case(case, bench["target_accuracy"]) for case in bench["cases"]]
    except OSError as error:
        raise NothingToDraw(f"{path}: {error.strerror}") from error
    except (KeyError, TypeError, ValueError) as error:
        reason = f"{type(error).__name__} {error}"
        raise NothingToDraw(f"{path}: {reason}: not the JSON that this figure is drawn from") from error


def read_cases(options):
    cases = []
    for path in options.files:
        new = read(path)
        places = {case.place() for case in new}
        cases = [case for case in cases if case.place() not in places] + new
    cases = [case for case in cases if case.learners is not None and is_wanted(case, options)]
    if not cases:
        raise NothingToDraw("there is no such run in these files")
    return cases


def is_wanted(case, options):
    return options.learners in (None, case.learners) and options.batch_size in (None, case.batch_size)


def plural(learners):
    return f"{learners} learner" + ("s" if learners > 1 else "")


def series_by_learners(cases, value):
    """Returns {name: [(batch size, value)]} for the cases that have a value."""
    series = {}
    for case in sorted(cases, key=lambda case: (case.learners, case.batch_size)):
        number = value(case)
        if number is not None:
            series.setdefault(plural(case.learners), []).append((case.batch_size, number))
    return series


def common_target(cases):
    targets = {case.target for case in cases}
    return targets.pop() if len(targets) == 1 else None


def over_batch_size(title, y_title, series, notes):
    points = [point for points in series.values() for point in points]
    x = Axis("batch size of a learner", [point[0] for point in points], doubling=True)
    y = Axis(y_title, [point[1] for point in points])
    return line_chart(title, x, y, series, notes)


def gain(options):
    cases = read_cases(options)
    alone = {case.batch_size: case.images_per_second for case in cases if case.learners == 1}

    def value(case):
        base = alone.get(case.batch_size)
        return case.images_per_second / base if base and case.images_per_second else None

    series = series_by_learners(cases, value)
    if len(series) < 2:
        raise NothingToDraw("a gain needs runs with one learner and with more, of the same batch size")
    title = "Throughput gain of many learners"
    return over_batch_size(title, "images/s over those of one learner", series, options.note)


def time(options):
    cases = read_cases(options)
    series = series_by_learners(cases, lambda case: case.seconds)
    if not series:
        raise NothingToDraw("in none of these cases did half of the runs reach the target")
    short = {}  # batch sizes by learners
    for case in sorted(cases, key=lambda case: (case.learners, case.batch_size)):
        if case.seconds is None:
            short.setdefault(plural(case.learners), []).append(str(case.batch_size))
    left_out = [f"{learners}: b = {', '.join(sizes)}" for learners, sizes in short.items()]
    notes = ["Not reached by half of the runs or more:", *left_out] if short else []
    level = common_target(cases)
    title = f"Time to {100 * level:g} % test accuracy" if level else "Time to accuracy"
    return over_batch_size(title, "seconds to the target, median over seeds", series, [*notes, *options.note])


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("figure", choices=("gain", "time"))
    parser.add_argument("files", nargs="+", metavar="JSON")
    parser.add_argument("--learners", type=int, help="runs with so many only")
    parser.add_argument("--batch-size", type=int, help="runs with this one only")
    parser.add_argument("--note", action="append", default=[], help="a line below it: where recipes differ")
    arguments = parser.parse_args()
    draw = {"gain": gain, "time": time}[arguments.figure]
    try:
        sys.stdout.write(draw(arguments))
    except NothingToDraw as error:
        print(f"error: {error}", file=sys.stderr)
        sys.exit(2)


if __name__ == "__main__":
    main()
