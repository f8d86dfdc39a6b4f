#!/usr/bin/env python3
"""Makes tables and charts of what all_reduce_bench has measured, with its predictions beside.

    bench/all_reduce/report.py bench/results/all-reduce-algorithms-2026-11-27.jsonl \\
        --page bench/results/2026-11-27-all-reduce-algorithms.md --figures bench/figures

Writes the tables below the heading "## Tables" of the page, and a chart for each number of processes. Without --page the
tables go to stdout. Other work on the machine makes a turn only slower, so the fastest turn of each method is shown.
Exit codes: 0 done, 2 the rows lack something.
"""

import argparse
import json
import pathlib
import statistics
import sys

ROOT = pathlib.Path(__file__).resolve().parents[2]
sys.path.insert(0, str(ROOT / "bench"))
from figures.chart import Axis, line_chart  # noqa: E402
from figures.tables import replace_tables, table  # noqa: E402

LABELLED = 3  # powers of two from one label of an axis to the next


class Measured:
    """The rows of one number of processes."""

    def __init__(self, rows, processes):
        own = [row for row in rows if row["processes"] == processes]
        fits = [row for row in own if "messages" in row]
        self.sums = sorted((row for row in own if "results" in row), key=lambda row: row["elements"])
        if len(fits) != 1 or not self.sums:
            raise ValueError(f"{processes} processes have {len(fits)} rows of messages, not one, and {len(self.sums)} of sums")
        self.processes, self.fit = processes, fits[0]
        self.loads = [row["machine"]["load_average"] for row in own]

    def results(self, row):
        return {result["name"]: result for result in row["results"] if "seconds" in result and result["name"] != "memcpy"}

    @property
    def methods(self):
        return list(self.results(self.sums[0]))

    def points(self, method):
        """Returns [(floats, measured seconds, predicted seconds or None)]."""
        results = [(row["elements"], self.results(row)[method]) for row in self.sums]
        return [(elements, result["fastest_seconds"], result.get("predicted_seconds"))
                for elements, result in results]


def microseconds(seconds):
    return f"{1e6 * seconds:,.0f}" if seconds >= 1e-4 else f"{1e6 * seconds:,.1f}"


def errors_text(errors):
    middle = statistics.median(map(abs, errors))
    return [f"{100 * middle:.0f} %", f"{100 * min(errors):+.0f} %", f"{100 * max(errors):+.0f} %"]


def fits_table(all_measured):
    rows = []
    for measured in all_measured:
        fit = measured.fit
        errors = [message["predicted_seconds"] / message["seconds"] - 1 for message in fit["messages"]]
        rows.append([str(measured.processes), f"{1e6 * fit['latency_seconds']:.1f}",
                     f"{1e-9 / fit['seconds_per_byte']:.2f}" if fit["seconds_per_byte"] else "-",
                     f"{1e-9 / fit['seconds_per_added_byte']:.2f}", *errors_text(errors)])
    header = ["processes", "alpha, us", "1/beta, GB/s", "1/gamma, GB/s", "median error", "errors from", "to"]
    return table(header, rows)


def sums_table(measured):
    points = {method: measured.points(method) for method in measured.methods}
    rows = []
    for place, row in enumerate(measured.sums):
        cells = [(method, *points[method][place][1:]) for method in measured.methods]
        texts = [microseconds(seconds) + (f" ({microseconds(predicted)})" if predicted is not None else "")
                 for _, seconds, predicted in cells]
        rows.append([f"{row['elements']:,}", *texts, min(cells, key=lambda cell: cell[1])[0]])
    return table(["floats", *measured.methods, "fastest"], rows)


def errors_table(all_measured):
    rows = []
    for measured in all_measured:
        for method in measured.methods:
            errors = [predicted / seconds - 1 for _, seconds, predicted in measured.points(method)
                      if predicted is not None]
            if errors:
                rows.append([str(measured.processes), method, *errors_text(errors)])
    return table(["processes", "algorithm", "median error", "errors from", "to"], rows)


def report(all_measured):
    machine = all_measured[0].fit["machine"]
    loads = [load for measured in all_measured for load in measured.loads]
    skipped = {(result["name"], result["skipped"]) for measured in all_measured for row in measured.sums
               for result in row["results"] if "skipped" in result}
    parts = [f"Measured on {machine['processor']}, {machine['usable_cores']} cores. "
             f"Load average: {min(loads):.1f} to {max(loads):.1f}.\n",
             *(f"{name} is skipped: {reason}.\n" for name, reason in sorted(skipped)),
             "### Messages between pairs of ranks, and the fit\n", fits_table(all_measured)]
    for measured in all_measured:
        parts += [f"### Microseconds of a sum, {measured.processes} processes: measured (predicted)\n", sums_table(measured)]
    return "\n".join([*parts, "### Predicted over measured seconds\n", errors_table(all_measured)])


def chart(measured):
    series, marks = {}, {}
    for color, method in enumerate(measured.methods):
        points = measured.points(method)
        series[method] = [(elements, 1e6 * seconds) for elements, seconds, _ in points]
        marks[method] = (color, "dots")
        if points[0][2] is not None:
            series[f"{method}, predicted"] = [(elements, 1e6 * predicted) for elements, _, predicted in points]
            marks[f"{method}, predicted"] = (color, "line")
    x = Axis("floats", [row["elements"] for row in measured.sums], doubling=True)
    y = Axis("microseconds", [y for points in series.values() for _, y in points], doubling=True)
    for axis in (x, y):
        labelled = axis.ticks[::LABELLED]
        axis.text = lambda value, labelled=labelled: f"{value:,.6g}" if value in labelled else ""
    return line_chart(f"All-reduce between {measured.processes} processes: dots are measured, lines predicted", x, y,
                      series, marks=marks)


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("rows", type=pathlib.Path)
    parser.add_argument("--page", type=pathlib.Path)
    parser.add_argument("--figures", type=pathlib.Path)
    arguments = parser.parse_args()
    try:
        rows = [json.loads(line) for line in arguments.rows.read_text(encoding="utf-8").splitlines()]
        all_measured = [Measured(rows, processes) for processes in sorted({row["processes"] for row in rows})]
        if not all_measured:
            raise ValueError("there are no rows")
        tables = report(all_measured)
        if arguments.page:
            replace_tables(arguments.page, tables)
        else:
            print(tables)
        for measured in all_measured if arguments.figures else []:
            path = arguments.figures / f"all-reduce-{measured.processes}.svg"
            path.write_text(chart(measured), encoding="utf-8")
    except (OSError, KeyError, TypeError, ValueError) as error:
        print(f"error: {arguments.rows}: {type(error).__name__}: {error}", file=sys.stderr)
        return 2
    return 0


if __name__ == "__main__":
    sys.exit(main())
