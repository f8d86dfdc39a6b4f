#!/usr/bin/env python3
"""Prints a table of Arbalest's targets on a GPU and of bench/gpu.sh's measurements: gpu_summary.py OUT."""

import json
import pathlib
import statistics
import sys

import kernel_rates

LENET = "configs/lenet-digits.txtpb"
PAPER_GAINS = {32: 78, 64: 65, 128: 44}  # percent, by batch size: Koliousis et al., VLDB 2019; one Titan X, a ResNet-32 presumably


def make_curve(key, points):
    best = max(points, key=rate)
    one = points[0] if points[0]["learners"] == 1 else None
    return dict(zip(("job", "batch", "precision", "connections"), key), curve=points, best_learners=best["learners"],
                gain=rate(best) / rate(one) if one else None)


class Results:
    """The contents of gpu.sh's output directory."""

    def __init__(self, directory):
        self.steps = {}  # name -> (status, note)
        for line in (directory / "steps.tsv").read_text().splitlines():
            name, status, _, note = line.split("\t")
            self.steps[name] = (status, note)
        lines = (directory / "results.jsonl").read_text().splitlines()
        # A step that ran again replaces its earlier result.
        self.all = list({result.get("step", n): result for n, result in enumerate(map(json.loads, lines))}.values())
        self.machine = (directory / "machine.txt").read_text()

    def of(self, question):
        return [result for result in self.all if result["question"] == question]

    def curves(self, **fields):
        """Returns curves of images/s over learners from the results that have these fields. gpu.sh measures each point
        separately. The points of a job, batch size, precision and number of hardware queues make a curve. A point that
        is measured again replaces the earlier one."""
        found = {}
        for result in self.of("learners of a GPU"):
            if all(result[name] == value for name, value in fields.items()):
                key = (result["job"], result["batch"], result["precision"], result["connections"])
                alone = {point["learners"]: point for point in result["curve"]
                         if point.get("team", 1) == 1 and point.get("kernels", "TIMED") == "TIMED"}
                if alone:
                    found.setdefault(key, {}).update(alone)
        return [make_curve(key, [points[learners] for learners in sorted(points)]) for key, points in found.items()]

    def teams(self):
        """Returns (job, batch size, precision, point of a team, point of as many learners alone), measured in turns. Results
        that compare kernels are left out: kernels() returns these."""
        found = []
        for result in self.of("learners of a GPU"):
            if any(point.get("kernels") == "FIXED" for point in result["curve"]):
                continue
            alone = {point["learners"]: point for point in result["curve"] if point.get("team", 1) == 1}
            found += [(result["job"], result["batch"], result["precision"], point, alone.get(point["learners"]))
                      for point in result["curve"] if point.get("team", 1) > 1]
        return found

    def kernels(self):
        """Returns (job, batch size, precision, point with timed kernels, the same point with the rule's), measured in turns.
        """
        found = []
        for result in self.of("learners of a GPU"):
            fixed = {(point["learners"], point.get("team", 1)): point for point in result["curve"]
                     if point.get("kernels") == "FIXED"}
            found += [(result["job"], result["batch"], result["precision"], point, fixed[point["learners"], point["team"]])
                      for point in result["curve"]
                      if point.get("kernels") == "TIMED" and (point["learners"], point["team"]) in fixed]
        return found

    def curve(self):
        """Returns {number of learners: point} and the best point, for LeNet with batch size 32 in FP32."""
        found = self.curves(job=LENET, batch=32, precision="FP32")
        if not found:
            return {}, None
        points = {point["learners"]: point for point in found[0]["curve"]}
        return points, points[found[0]["best_learners"]]

    def launch(self, name):
        found = [c for result in self.of("launch floor") for c in result["contenders"] if c["name"] == name]
        return found[0] if found else None

    def peer(self, prefix):
        """Returns the fastest of PyTorch's contenders whose name begins with `prefix`."""
        found = [peer for result in self.of("PyTorch peers") for peer in result["results"]
                 if peer["name"].startswith(prefix)]
        return max(found, key=lambda peer: peer["images_per_second"], default=None)


def rate(point):
    return point["images_per_second"]["median"]


def percent(summary):
    """Formats a summary of fractions as percentages with quartiles."""
    return f"{100 * summary['median']:.1f} % ({100 * summary['first_quartile']:.1f} to {100 * summary['third_quartile']:.1f})"


class Table:
    def __init__(self):
        self.rows = []

    def add(self, what, target, measured, met):
        """`met`: True, False, or None if there is no target or no measurement."""
        verdict = "" if met is None else "met" if met else "**missed**"
        self.rows.append((what, target, measured or "not measured", verdict))

    def print(self):
        print("| what | target | measured | verdict |\n|---|---|---|---|")
        for row in self.rows:
            print("| " + " | ".join(row) + " |")


def add_tests(table, results):
    for name, what, target in (
            ("operators", "every operator against its double-precision reference; FP32, TF32, BF16",
             "‖Δ‖/‖ref‖ < 1e-5, 2⁻⁹, 2⁻⁸"),
            ("first_losses", "losses of LeNet's first 100 steps against the CPU", "within 1e-3"),
            ("repeatability", "repeated runs, and runs without CUDA graphs", "the same bytes"),
            ("training", "all other tests of training on a GPU", "pass"),
            ("fused_own_kernels", "our own kernels of convolutions and dense layers", "pass"),
            ("fused_teams", "teams against learners on streams of their own", "the same bytes"),
            ("several_gpus", "training on two GPUs against the CPU", "pass"),
            ("train_small", "`arbalest train configs/lenet-digits.txtpb` on a GPU", "reaches 99 %"),
            ("memcheck", "compute-sanitizer memcheck", "no finding in our kernels"),
            ("racecheck", "compute-sanitizer racecheck", "no finding in our kernels"),
            ("initcheck", "compute-sanitizer initcheck", "no finding in our kernels"),
            ("synccheck", "compute-sanitizer synccheck", "no finding in our kernels"),
            ("fused_racecheck", "compute-sanitizer racecheck, small products", "no finding in our kernels"),
            ("fused_synccheck", "compute-sanitizer synccheck, small products", "no finding in our kernels")):
        if name.startswith("fused_") and name not in results.steps:
            continue
        status, note = results.steps.get(name, ("not run", ""))
        met = {"passed": True, "failed": False}.get(status)
        table.add(what, target, status + (f": {note}" if note else ""), met)


def add_learners(table, results):
    points, best = results.curve()
    eager = results.peer("eager")
    if best is None:
        for what, target in (("LeNet b = 32, images/s", "2,000,000"), ("over PyTorch eager", "≥ 10"),
                             ("best m over m = 1", "≥ 1.78"), ("averaging", "≤ 3 % of a round"),
                             ("one host thread keeps all streams busy", "≥ 95 % of the time")):
            table.add(what, target, "", None)
        return
    m = best["learners"]
    table.add(f"images/s with the best m, {m}", "2,000,000",
              f"{rate(best):,.0f}, spread {100 * best['images_per_second']['spread']:.1f} %", rate(best) >= 2e6)
    over = rate(best) / eager["images_per_second"] if eager else None
    table.add("over PyTorch eager (the fastest variant)", "≥ 10",
              f"{over:.1f}: {eager['name']} {eager['images_per_second']:,.0f} images/s" if eager else "",
              over >= 10 if eager else None)
    if 1 in points:
        gain = rate(best) / rate(points[1])
        table.add(f"m = {m} over m = 1", "≥ 1.78", f"{gain:.2f}", gain >= 1.78)
    share = best["averaging_share"]
    table.add(f"averaging with m = {m}", "≤ 3 % of a round", percent(share) if share else "",
              share["median"] <= 0.03 if share else None)
    table.add(f"one host thread keeps all streams busy, m = {m}", "≥ 95 % of the time",
              f"{100 * best['streams_busy']:.1f} %; host {1e6 * best['host_seconds_of_step']['median']:.1f} µs a step, "
              f"{100 * best['host_share']['median']:.0f} % of its time", best["streams_busy"] >= 0.95)
    share = best["all_reduce_share"]
    table.add(f"copies of as many bytes as an all-reduce of two GPUs moves, every round, m = {m}", "", f"{percent(share)} of a round" if share else "", None)


def host(point):
    """Describes the host's time of a learner's step, and of a round, in which every learner does one."""
    step = 1e6 * point["host_seconds_of_step"]["median"]
    return f"host {step:.1f} µs a step, {step * point['learners']:.1f} µs a round"


def add_kernels(table, results):
    for job, batch, precision, timed, fixed in results.kernels():
        table.add(f"{pathlib.Path(job).stem}, b = {batch}, {precision}: {timed['learners']} learners in teams of {timed['team']}, "
                  "kernels TIMED", "", f"{rate(timed):,.0f} images/s, {rate(timed) / rate(fixed):.2f} times as many as with FIXED",
                  None)


def add_teams(table, results):
    for job, batch, precision, point, alone in results.teams():
        ratio = f", {rate(point) / rate(alone):.2f} times as many as on streams of their own" if alone else ""
        table.add(f"{pathlib.Path(job).stem}, b = {batch}, {precision}: {point['learners']} learners in teams of {point['team']}",
                  "", f"{rate(point):,.0f} images/s{ratio}; {host(point)}",
                  None)


def add_launches(table, results):
    learner = results.launch("one learner")
    table.add("one learner's step over its launch floor", "< 2", f"{learner['over_floor']:.2f}" if learner else "",
              learner["over_floor"] < 2 if learner else None)
    graph = results.launch("the step as one graph")
    if graph:
        floor = results.launch("empty kernels")
        nodes = results.of("launch floor")[0]["nodes"]
        table.add(f"the same as one CUDA graph of {nodes} nodes", "", f"{graph['over_floor']:.2f}: "
                  f"{1e6 * graph['step_seconds']:.1f} µs over {1e6 * floor['step_seconds']:.1f} µs", None)


def add_peers(table, results):
    _, best = results.curve()
    for prefix, what in (("CUDA graph", "PyTorch, step as a CUDA graph"), ("compiled", "PyTorch, compiled"),
                         ("shared", "PyTorch, processes that share the GPU, a model each")):
        peer = results.peer(prefix)
        over = f"; Arbalest's best is {rate(best) / peer['images_per_second']:.1f} times that" if peer and best else ""
        table.add(what, "", f"{peer['images_per_second']:,.0f} images/s{over}" if peer else "", None)


def print_curve(results):
    points, _ = results.curve()
    if not points:
        return
    print("\n| learners | images/s | over m = 1 | host µs a step | averaging | streams busy | gap µs | step µs |\n"
          "|---|---|---|---|---|---|---|---|")
    first = rate(next(iter(points.values())))
    for m, point in points.items():
        share = point["averaging_share"]
        print(f"| {m} | {rate(point):,.0f} | {rate(point) / first:.2f} | "
              f"{1e6 * point['host_seconds_of_step']['median']:.1f} | {percent(share) if share else '-'} | "
              f"{100 * point['streams_busy']:.1f} % | {1e6 * point['gap_seconds']:.1f} | {1e6 * point['step_seconds']:.1f} |")
    for again in results.curves(job=LENET, batch=32, precision="FP32")[1:]:
        print(f"\nWith CUDA_DEVICE_MAX_CONNECTIONS={again['connections']}, images/s by learners: {rates_of(again)}.")
    for precision in ("TF32", "BF16"):
        for other in results.curves(precision=precision):
            print(f"\nIn {precision}, images/s by learners: {rates_of(other)}.")


def rates_of(curve):
    return ", ".join(f"{point['learners']}: {rate(point):,.0f}" for point in curve["curve"])


def gain_of(curve):
    return f"{100 * (curve['gain'] - 1):+.0f} %" if curve["gain"] else "one learner was not measured"


def print_gains(results):
    """Prints the gain of many learners over one, by model and batch size, and the paper's gain."""
    curves = sorted(results.curves(precision="FP32"), key=lambda c: (c["job"], c["batch"]))
    if not curves:
        return
    print("\n| job | batch size | best number of learners | its images/s over one learner's | the paper's best | images/s by learners |\n"
          "|---|---|---|---|---|---|")
    for curve in curves:
        paper = f"+{PAPER_GAINS[curve['batch']]} %" if curve["batch"] in PAPER_GAINS else ""
        print(f"| {pathlib.Path(curve['job']).stem} | {curve['batch']} | {curve['best_learners']} | "
              f"{gain_of(curve)} | {paper} | {rates_of(curve)} |")


def print_times_to_accuracy(results):
    """Prints the time to an accuracy of each contender: the median and the range over its seeds."""
    runs = {}
    for result in results.of("time to accuracy"):
        who = result["contender"]
        if "learners" in result:
            who += f", {result['learners']} learners in teams of {result['team']}, {result['precision']}"
        runs.setdefault((pathlib.Path(result["job"]).stem, who, result["mini_batch"], result["target"]), []).append(result)
    if not runs:
        return
    print("\n| job | contender | examples a step | target | seeds that reached it | seconds | epochs | best accuracy |\n"
          "|---|---|---|---|---|---|---|---|")
    for (job, who, mini_batch, target), found in sorted(runs.items()):
        reached = [run for run in found if run["seconds_to_target"] is not None]
        seconds = sorted(run["seconds_to_target"] for run in reached)
        epochs = statistics.median_low(run["epochs_to_target"] for run in reached) if reached else "-"
        best = sorted(run["best_accuracy"] for run in found if run["best_accuracy"] is not None)
        took = f"{statistics.median(seconds):.1f} ({seconds[0]:.1f} to {seconds[-1]:.1f})" if seconds else "-"
        accuracy = f"{100 * best[0]:.2f} to {100 * best[-1]:.2f} %" if best else "-"
        print(f"| {job} | {who} | {mini_batch} | {100 * target:.2f} % | {len(reached)} of {len(found)} | {took} | {epochs} | "
              f"{accuracy} |")


def print_kernel_rates(results):
    for result in results.of("kernel rates"):
        print(f"\nCandidates of kernels, {pathlib.Path(result['job']).stem}, {', '.join(result['changes'])}:\n")
        print("\n".join(kernel_rates.table(result["layers"])))


def print_failures(results):
    """Prints all failed steps with the script's notes."""
    for name, (status, note) in results.steps.items():
        if status == "failed":
            print(f"\nFailed: {name}: {note}")


def main():
    if len(sys.argv) != 2:
        sys.exit(__doc__)
    results = Results(pathlib.Path(sys.argv[1]))
    table = Table()
    add_tests(table, results)
    add_learners(table, results)
    add_teams(table, results)
    add_kernels(table, results)
    add_launches(table, results)
    add_peers(table, results)
    table.print()
    print_failures(results)
    print_curve(results)
    print_gains(results)
    print_times_to_accuracy(results)
    print_kernel_rates(results)
    print("\n```\n" + results.machine.strip() + "\n```")


if __name__ == "__main__":
    main()
