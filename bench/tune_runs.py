#!/usr/bin/env python3
"""Does `arbalest tune` give the same answer again, and the same one beside other programs?

The script runs `tune --no-cache --json` several times, with programs and numbers of busy neighbors in turns, and appends
one JSON object to --results when a run ends. It skips runs that the file already has, so an interrupted series continues
with the same command. A neighbor is a process that computes all the time and ends with the run.

    bench/tune_runs.py --program before=old/arbalest --program after=build/release/arbalest --results tune-runs.jsonl \\
        --runs 5 --neighbors 0,1 --sweep
    bench/tune_runs.py --results tune-runs.jsonl --table

Without neighbors nothing else may run on the machine. The load average at the begin of each run is recorded.
"""
import argparse
import json
import os
import pathlib
import shutil
import statistics
import subprocess
import sys
import tempfile
import time

KEY = ("program", "job", "settings", "sweep", "neighbors", "run")
BUSY = "while :; do :; done"


def parse():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--program", action="append", default=[], metavar="NAME=PATH")
    parser.add_argument("--results", required=True, type=pathlib.Path)
    parser.add_argument("--job", default="configs/lenet-mnist.txtpb")
    parser.add_argument("--set", action="append", default=[], dest="settings", metavar="PATH=VALUE")
    parser.add_argument("--data-root", default="")
    parser.add_argument("--runs", type=int, default=5)
    parser.add_argument("--neighbors", default="0", help="numbers of busy processes, such as 0,1")
    parser.add_argument("--sweep", action="store_true")
    parser.add_argument("--limit-seconds", type=int, default=900, help="of a run; its neighbors end then, too")
    parser.add_argument("--table", action="store_true", help="run nothing, print what the file has")
    return parser.parse_args()


def read(path):
    if not path.exists():
        return []
    return [json.loads(line) for line in path.read_text().splitlines() if line.strip()]


def key_of(record):
    return tuple(json.dumps(record[name]) for name in KEY)


def rates_of(tuned):
    """Images/s by learners on each device; the windows of a sweep replace those of the search."""
    rates = {}
    for point in tuned["points"] + tuned["sweep"]:
        if isinstance(point["learners"], int):
            rates[str(point["learners"])] = point["images_per_second"]
    return rates


def claim_of(tuned):
    """The gain over one learner that a reader takes from the answer, and by what; none if one was not measured."""
    if "gain" in tuned:
        gain = tuned["gain"]
        return (gain["ratio"], gain["by"]) if gain else (None, "")
    rates = rates_of(tuned)
    chosen = str(tuned["chosen"][0])
    if "1" not in rates or chosen not in rates:
        return None, ""
    return rates[chosen] / rates["1"], "examples_per_second"


def record_of(key, tuned, load, seconds):
    claimed, by = claim_of(tuned)
    rates = rates_of(tuned)
    machine = tuned.get("machine", {})
    return {**key, "chosen": tuned["chosen"], "claimed_gain": claimed, "claimed_by": by,
            "clock_gain_of_2": rates["2"] / rates["1"] if "1" in rates and "2" in rates else None,
            "regret": tuned["regret"], "regret_error": tuned.get("regret_error"), "is_quiet": machine.get("is_quiet"),
            "lost": machine.get("lost"), "disturbed_windows": machine.get("disturbed_windows"),
            "load_average_at_begin": load, "seconds": seconds, "tune": tuned}


def run(arguments, path, key):
    command = [path, "tune", key["job"], "--no-cache", "--json"]
    for setting in key["settings"]:
        command += ["--set", setting]
    if key["sweep"]:
        command.append("--sweep")
    if arguments.data_root:
        command += ["--data-root", arguments.data_root]
    limit = ["timeout", str(arguments.limit_seconds)]
    load = os.getloadavg()[0]
    neighbors = [subprocess.Popen(limit + ["sh", "-c", BUSY]) for _ in range(key["neighbors"])]
    directory = tempfile.mkdtemp(prefix="tune-runs-")
    begin = time.monotonic()
    try:
        done = subprocess.run(limit + command + ["--output", directory + "/tuned"], capture_output=True, text=True)
    finally:
        for neighbor in neighbors:
            neighbor.terminate()
            neighbor.wait()
        shutil.rmtree(directory, ignore_errors=True)
    if done.returncode != 0:
        sys.exit(f"'{' '.join(command)}' ended with exit code {done.returncode}:\n{done.stderr}")
    return record_of(key, json.loads(done.stdout), load, time.monotonic() - begin)


def number(value, form):
    return "-" if value is None else format(value, form)


def table(records):
    groups = {}
    for record in records:
        groups.setdefault(key_of(record)[:-1], []).append(record)
    lines = ["| program | job | sweep | neighbors | runs | gain claimed | by | chosen | slower than the sweep's best | "
             "quiet | lost |", "|---|---|---|---:|---:|---|---|---|---|---|---|"]
    for group in groups.values():
        first = group[0]
        lines.append("| " + " | ".join([
            first["program"], pathlib.Path(first["job"]).stem, "yes" if first["sweep"] else "no",
            str(first["neighbors"]), str(len(group)),
            ", ".join(number(of["claimed_gain"], ".2f") for of in group),
            ", ".join(sorted({of["claimed_by"] for of in group if of["claimed_by"]})),
            ", ".join("+".join(map(str, of["chosen"])) for of in group),
            ", ".join(number(None if of["regret"] is None else 100 * of["regret"], ".1f") for of in group) + " %",
            "-" if first["is_quiet"] is None else f"{sum(of['is_quiet'] for of in group)} of {len(group)}",
            "-" if first["lost"] is None else f"{100 * statistics.median(of['lost'] for of in group):.1f} %"]) + " |")
    return "\n".join(lines)


def main():
    arguments = parse()
    if arguments.table:
        print(table(read(arguments.results)))
        return
    if not arguments.program:
        sys.exit("--program NAME=PATH is missing")
    programs = dict(of.split("=", 1) for of in arguments.program)
    done = {key_of(record) for record in read(arguments.results)}
    for number_of_run in range(1, arguments.runs + 1):
        for neighbors in (int(text) for text in arguments.neighbors.split(",")):
            for name, path in programs.items():
                key = {"program": name, "job": arguments.job, "settings": arguments.settings, "sweep": arguments.sweep,
                       "neighbors": neighbors, "run": number_of_run}
                if key_of(key) in done:
                    continue
                record = run(arguments, path, key)
                with arguments.results.open("a") as file:
                    file.write(json.dumps(record) + "\n")
                print(f"{name}, {neighbors} neighbors, run {number_of_run}: gain "
                      f"{number(record['claimed_gain'], '.2f')}, regret {number(record['regret'], '.3f')}, quiet "
                      f"{record['is_quiet']}", file=sys.stderr)
    print(table(read(arguments.results)))


if __name__ == "__main__":
    main()
