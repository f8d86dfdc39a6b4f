#!/usr/bin/env python3
"""How long does training stand still when a checkpoint is saved?

    bench/save_stall.py configs/lenet-digits.txtpb --saves 100 --results stalls.jsonl

A run saves a checkpoint every --every mini-batches and writes a trace. A pause is a time in which no learner computes. The
save copies the state between two rounds, so each save makes one pause: the copy, the start of the writing thread, and the
refilling of the learners' queues. The same run without checkpoints shows the pauses that training has anyway. Prints the
pauses of the saves beside the median time of a round. Needs a quiet machine. Each run is a line of the results.
"""

import argparse
import json
import os
import pathlib
import statistics
import subprocess
import sys
import tempfile

ROOT = pathlib.Path(__file__).resolve().parents[1]


def train(program, job, settings):
    """Runs a job. Returns the spans of its trace and the rows of its log."""
    with tempfile.TemporaryDirectory() as name:
        output, trace = pathlib.Path(name) / "run", pathlib.Path(name) / "trace.json"
        command = [str(program), "train", job, "--quiet", "--output", str(output), "--trace", str(trace)]
        subprocess.run(command + [f"--set={setting}" for setting in settings], check=True, stdout=subprocess.DEVNULL)
        spans = [event for event in json.loads(trace.read_text(encoding="utf-8"))["traceEvents"] if event["ph"] == "X"]
        log = (output / "metrics.jsonl").read_text(encoding="utf-8").splitlines()
        return spans, [json.loads(line) for line in log]


def pauses_of(spans):
    """Returns the times in microseconds between two training spans in which no learner computes."""
    busy = sorted((span["ts"], span["ts"] + span["dur"], span["cat"]) for span in spans if span["cat"] in ("training", "evaluation"))
    pauses, end, before = [], busy[0][1], busy[0][2]
    for begin, span_end, category in busy[1:]:
        if begin > end and category == before == "training":
            pauses.append(begin - end)
        if span_end > end:
            end, before = span_end, category
    return sorted(pauses, reverse=True)


def round_of(spans):
    """Returns the median time in microseconds between the starts of two mini-batches of a learner."""
    starts = {}
    for span in spans:
        if span["cat"] == "training" and span["name"] == "gradient":
            starts.setdefault(span["tid"], []).append(span["ts"])
    return statistics.median(b - a for times in starts.values() for a, b in zip(sorted(times), sorted(times)[1:]))


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("job")
    parser.add_argument("--program", type=pathlib.Path, default=ROOT / "build/release/arbalest")
    parser.add_argument("--every", type=int, default=200, help="mini-batches between two saves (default: 200)")
    parser.add_argument("--set", action="append", default=["training.max_epochs=4"], help="a setting of both runs")
    parser.add_argument("--results", type=pathlib.Path, required=True, help="file of the results, a line for each run")
    arguments = parser.parse_args()
    spans, _ = train(arguments.program, arguments.job, [*arguments.set, "checkpoint.keep_last=0"])
    without = pauses_of(spans)
    spans, rows = train(arguments.program, arguments.job, [*arguments.set, f"checkpoint={{every_batches: {arguments.every}}}"])
    saves = sum(row["event"] == "checkpoint" for row in rows)
    row = {
        "job": arguments.job,
        "set": arguments.set,
        "every": arguments.every,
        "saves": saves,
        "round": round_of(spans),
        "pauses with saves": pauses_of(spans)[: 2 * saves],
        "pauses without": without[: 2 * saves],
        "load": os.getloadavg()[0],
    }
    with arguments.results.open("a", encoding="utf-8") as file:
        file.write(json.dumps(row) + "\n")
    longest, median = row["pauses with saves"][0], statistics.median(row["pauses with saves"][:saves])
    print(
        f"{saves} saves: the longest pause is {longest / 1e3:.2f} ms, the median {median / 1e3:.2f} ms; a round takes "
        f"{row['round'] / 1e3:.2f} ms; the longest pause without saves is {without[0] / 1e3:.2f} ms"
    )
    return 0


if __name__ == "__main__":
    sys.exit(main())
