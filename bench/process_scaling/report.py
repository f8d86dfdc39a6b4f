#!/usr/bin/env python3
"""Predicts how training scales to 256 machines, and checks the model against what was measured (measure.py).

    bench/process_scaling/report.py bench/results/process-scaling-2026-11-27.jsonl \\
        --page bench/results/2026-11-27-scaling-predictions.md --figures bench/figures

Writes the tables below the heading "## Tables" of the page, and three charts. Without --page the tables go to stdout.
Other work on the machine makes a run only slower, so the fastest of several runs counts.
Exit codes: 0 done, 2 the rows lack what the model needs.
"""

import argparse
import json
import math
import pathlib
import statistics
import sys

ROOT = pathlib.Path(__file__).resolve().parents[2]
sys.path.insert(0, str(ROOT / "bench"))
from figures.chart import Axis, line_chart  # noqa: E402
from figures.tables import replace_tables, table  # noqa: E402
from process_scaling.measure import MODELS, WIRES  # noqa: E402
from process_scaling.model import SCHEMES, Job, Machine, all_reduce, efficiency, fit, traffic  # noqa: E402

RANKS = [2**power for power in range(9)]
TABLE_RANKS = (2, 4, 16, 64, 256)
TITLES = {"lenet": "LeNet", "resnet20": "ResNet-20", "resnet50": "ResNet-50"}
# Networks that nobody measured: seconds from host to host, bits/s.
ETHERNET = {"1 Gbit/s": (50e-6, 1e9), "10 Gbit/s": (20e-6, 10e9), "100 Gbit/s": (10e-6, 100e9)}
PAIRS = {"configs/lenet-mnist.txtpb": ("lenet", "sma"), "resnet20-16x400.txtpb": ("resnet20", "s_sgd")}
CORES = 2


class Unfit(Exception):
    """The rows lack something, or say something twice."""


def only(rows, what, **values):
    found = [row for row in rows if all(row.get(name) == value for name, value in values.items())]
    if len(found) != 1:
        raise Unfit(f"{len(found)} rows of {what}, not one: measure again with process_scaling/measure.py")
    return found[0]


def round_seconds(row):
    """Seconds of a mini-batch of every learner. Other work on the machine stretches a run, and less so its processor
    time, so the cores' processor time counts where it is shorter. It includes the start of the program."""
    examples = row["processes"] * row["learners"] * row["batch"]
    processor_seconds = min(row["processor_seconds"]) / CORES * examples / row["images"]
    return min(examples / max(row["images_per_second"]), processor_seconds)


class Measured:
    def __init__(self, rows):
        self.rows = rows
        self.trainings = [row for row in rows if row["part"] in MODELS]
        self.names = list(dict.fromkeys(row["link"] for row in rows if row["part"] == "links"))
        if "TCP" not in self.names:
            raise Unfit("no row of the all-reduce over TCP: measure again with process_scaling/measure.py")
        self.links = {name: fit(name, [self.point(row) for row in self.sums(name, 2)], WIRES.get(name, float("inf")))
                      for name in self.names if name not in WIRES}
        for name in set(self.names) & set(WIRES):
            self.links[name] = self.links["TCP"].over(name, 0.0, 8 * WIRES[name])

    def sums(self, name, processes):
        return [row for row in self.rows if (row["part"], row.get("link"), row.get("processes")) ==
                ("links", name, processes)]

    @staticmethod
    def point(row):
        return *traffic(row["elements"], row["processes"], row["chunk"]), row["seconds"]

    def seconds(self, model, scheme, learners):
        """Seconds of a mini-batch of every learner in one process. Without a row of this scheme that of SMA counts."""
        known = {row["scheme"] for row in self.trainings if row["model"] == model}
        row = only(self.trainings, f"{model} in one process", model=model, processes=1, learners=learners,
                   scheme=scheme if scheme in known else "sma")
        return round_seconds(row)

    @property
    def predicted(self):
        return [model for model in ("lenet", "resnet50") if any(row["model"] == model for row in self.trainings)]

    def title(self, model):
        row = next(row for row in self.trainings if row["model"] == model)
        return f"{TITLES[model]}, b = {row['batch']}"

    def job(self, model, learners):
        return self.job_of(model, {each: self.seconds(model, each, learners) for each in SCHEMES})

    def job_of(self, model, seconds):
        sizes = only(self.rows, f"the sizes of {model}", part="models", model=model)
        return Job(sizes["elements"], sizes["buckets"], seconds, self.copying(sizes["elements"]))

    def copying(self, elements):
        """Seconds a byte of a copy between vectors of about this length, which reads and writes four bytes a float."""
        copies = self.sums("shared memory", 2)
        nearest = min(copies, key=lambda row: abs(math.log(row["elements"] / elements)))
        return nearest["memcpy_seconds"] / (8 * nearest["elements"])


def links_table(measured):
    rows = []
    for name, link in measured.links.items():
        for processes in (2, 4):
            sums = measured.sums(name, processes)
            if not sums:
                continue
            machine = Machine(cores=CORES, processes=processes)
            errors = [all_reduce(link, row["elements"], processes, machine, row["chunk"]).seconds / row["seconds"] - 1
                      for row in sums]
            costs = [f"{1e6 * link.latency:.0f}", f"{1e6 * link.per_message:.1f}", f"{1e-9 / link.per_byte:.2f}"]
            rows.append([name, str(processes), *costs, *error_range(errors)])
    header = ["link", "processes", "latency, us", "us a message", "GB/s", "median error", "errors from", "to"]
    return table(header, rows)


def error_range(errors):
    return [f"{100 * statistics.median(map(abs, errors)):.0f} %",
            *(f"{100 * error:+.0f} %" for error in (min(errors), max(errors)))]


def checks(measured):
    """Yields (row, measured ratio, predicted ratio) for each training in several processes."""
    for row in measured.trainings:
        if row["processes"] == 1:
            continue
        job = measured.job(row["model"], row["processes"] * row["learners"])
        machine = Machine(cores=CORES, processes=row["processes"])
        ratio = job.seconds[row["scheme"]] / round_seconds(row)
        yield row, ratio, efficiency(job, row["scheme"], measured.links[row["link"]], row["processes"], machine)


def checks_table(measured):
    rows = [[TITLES[row["model"]], row["scheme"], row["link"], str(row["processes"]), *compared(ratio, predicted)]
            for row, ratio, predicted in checks(measured)]
    return table(["model", "scheme", "link", "processes", "measured", "predicted", "error"], rows)


def compared(ratio, predicted):
    return [f"{ratio:.3f}", f"{predicted:.3f}", f"{100 * (predicted / ratio - 1):+.0f} %"]


def pairs_table(measured, lines):
    """Rows of pairs of another machine: its speed of one process, the links and the memory of this one."""
    pairs, rows = [json.loads(line) for line in lines], []
    for name, (model, scheme) in PAIRS.items():
        speeds = [row["images_per_second"] for row in pairs if row["job"] == name]
        seconds = 2 * MODELS[model].batch / statistics.median(speed["1"] for speed in speeds)
        job = measured.job_of(model, {scheme: seconds})
        predicted = efficiency(job, scheme, measured.links["shared memory"], 2, Machine(cores=CORES, processes=2))
        ratio = statistics.median(speed["2"] / speed["1"] for speed in speeds)
        rows.append([TITLES[model], scheme, *compared(ratio, predicted)])
    return table(["model", "scheme", "measured", "predicted", "error"], rows)


def networks(measured):
    return {name: measured.links["TCP"].over(name, *network) for name, network in ETHERNET.items()}


def predictions_table(measured, model):
    job, machine = measured.job(model, 2), Machine(cores=CORES, processes=1)
    links = {"shared memory": measured.links["shared memory"], **networks(measured)}
    rows = [[scheme, name, *(f"{efficiency(job, scheme, link, ranks, machine):.2f}" for ranks in TABLE_RANKS)]
            for scheme in SCHEMES for name, link in links.items()]
    return table(["scheme", "link", *(f"{ranks} machines" for ranks in TABLE_RANKS)], rows)


def exchanges_table(measured, models):
    machine, rows = Machine(cores=CORES, processes=1), []
    for model in models:
        elements = measured.job(model, 2).elements
        for ranks in (2, 256):
            messages, sent = traffic(elements, ranks)
            seconds = [all_reduce(link, elements, ranks, machine).seconds for link in networks(measured).values()]
            rows.append([TITLES[model], str(ranks), f"{messages:,}", f"{sent / messages / 1000:,.1f}",
                         f"{sent / 1e6:,.1f}", *(f"{1000 * each:,.1f}" for each in seconds)])
    header = ["model", "machines", "messages of a rank", "KB a message", "MB sent"]
    return table([*header, *(f"ms at {name}" for name in ETHERNET)], rows)


def report(measured, pairs):
    models = measured.predicted
    computing = [[measured.title(model), f"{job.elements:,}", *(f"{1000 * job.seconds[scheme]:,.2f}" for scheme in SCHEMES)]
                 for model in models for job in [measured.job(model, 2)]]
    first = measured.rows[0]
    loads = [row["load"] for row in measured.rows]
    parts = [f"Measured on {first['machine']}, on {first['date']}, at {first['commit']}. "
             f"Load average: {min(loads):.1f} to {max(loads):.1f}.\n",
             "### Links, fitted to measured sums\n", links_table(measured),
             "### Training in several processes on this machine, over one process with as many learners\n",
             checks_table(measured), f"### Two processes over one on another machine ({pairs.name})\n",
             pairs_table(measured, pairs.read_text(encoding="utf-8").splitlines()),
             "### Measured milliseconds of a round in one process with two learners\n",
             table(["model", "floats", *SCHEMES], computing), "### Predicted sums of the whole model\n",
             exchanges_table(measured, models)]
    for model in models:
        parts += [f"### Predicted share of linear scaling, {measured.title(model)}\n", predictions_table(measured, model)]
    return "\n".join(parts)


def share_axis(values):
    return Axis("images/s of a machine, one machine = 1", [*values, 1.0], from_zero=True)


def prediction_chart(measured, model):
    job, machine = measured.job(model, 2), Machine(cores=CORES, processes=1)
    series = {f"{scheme}, {name}": [(ranks, efficiency(job, scheme, link, ranks, machine)) for ranks in RANKS]
              for name, link in networks(measured).items() for scheme in SCHEMES if name != "100 Gbit/s"}
    x = Axis("machines", RANKS, doubling=True)
    y = share_axis([share for points in series.values() for _, share in points])
    return line_chart(f"{measured.title(model)}, over Ethernet: all predicted, nothing measured", x, y, series,
                      marks={name: (color, "line") for color, name in enumerate(series)})


def check_chart(measured):
    link, series, marks = "shared memory", {}, {}
    for color, scheme in enumerate(SCHEMES):
        found = [(row["processes"], ratio, predicted) for row, ratio, predicted in checks(measured)
                 if (row["model"], row["scheme"], row["link"]) == ("lenet", scheme, link)]
        if not found:
            continue
        series[f"{scheme}, predicted"] = [(1, 1.0), *((ranks, predicted) for ranks, _, predicted in found)]
        series[f"{scheme}, measured"] = [(1, 1.0), *((ranks, ratio) for ranks, ratio, _ in found)]
        marks |= {f"{scheme}, predicted": (color, "line"), f"{scheme}, measured": (color, "dots")}
    x = Axis("processes on this machine with 2 cores", [1, 4], doubling=True)
    shares = [share for points in series.values() for _, share in points]
    y = Axis("images/s over one process, as many learners", [*shares, 1.0], from_zero=True)
    return line_chart("LeNet: dots are measured, lines are predicted", x, y, series, marks=marks)


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("rows", type=pathlib.Path)
    parser.add_argument("--pairs", type=pathlib.Path, default=ROOT / "bench/results/process-pairs-2026-11-26.jsonl",
                        help="rows of bench/process_pairs.py (commit b45c93b7) to check the model against, too")
    parser.add_argument("--page", type=pathlib.Path)
    parser.add_argument("--figures", type=pathlib.Path)
    arguments = parser.parse_args()
    try:
        measured = Measured([json.loads(line) for line in arguments.rows.read_text(encoding="utf-8").splitlines()])
        tables = report(measured, arguments.pairs)
        if arguments.page:
            replace_tables(arguments.page, tables)
        else:
            print(tables)
        if arguments.figures:
            charts = {model: prediction_chart(measured, model) for model in measured.predicted}
            for name, chart in {"check": check_chart(measured), **charts}.items():
                (arguments.figures / f"scaling-{name}.svg").write_text(chart, encoding="utf-8")
    except (OSError, KeyError, TypeError, ValueError, Unfit) as error:
        print(f"error: {arguments.rows}: {type(error).__name__}: {error}", file=sys.stderr)
        return 2
    return 0


if __name__ == "__main__":
    sys.exit(main())
