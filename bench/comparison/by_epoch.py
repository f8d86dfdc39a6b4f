"""Compares our accuracies of every epoch with the peers', over runs with the same seeds."""

import statistics

from peers.accuracy_target import judged


def table(header, rows):
    lines = ["| " + " | ".join(header) + " |", "|" + "---|" * len(header)]
    return lines + ["| " + " | ".join(row) + " |" for row in rows] + [""]


def accuracy_read(sides):
    """Returns the accuracy that is compared: "validation" if the job has a validation set, otherwise "test"."""
    rows = [row for side in sides for run in side["runs"] for curve in run["curves"].values() for row in curve]
    return "validation" if rows and all("validation_accuracy" in row for row in rows) else "test"


def curves_of(side):
    """Returns {name of a curve: {seed: [accuracy of each epoch]}}."""
    found = {}
    for run in side["runs"]:
        for name, rows in run["curves"].items():
            found.setdefault(name, {})[run["seed"]] = [judged(row) for row in rows]
    return found


def at(curves, epoch):
    """Returns {seed: accuracy} of the runs that have reached this epoch. Epochs count from 1."""
    return {seed: accuracies[epoch - 1] for seed, accuracies in curves.items() if len(accuracies) >= epoch}


def percent(value):
    return f"{100 * value:.2f}"


def of_seeds(values):
    if not values:
        return "-"
    if len(values) == 1:
        return percent(values[0])
    return f"{percent(statistics.median(values))} ({percent(min(values))} to {percent(max(values))})"


def by_epoch(sides):
    """Returns a table with one row per epoch and one column per curve. After each peer's column is the difference, ours
    minus the peer's, for equal seeds."""
    ours, *others = (side for side in sides if side["runs"])
    if not ours["is_ours"]:
        return []
    mine = next(iter(curves_of(ours).values()), {})
    theirs = [(side["name"], name, curves) for side in others for name, curves in curves_of(side).items()]
    columns = [mine] + [curves for _, _, curves in theirs]
    epochs = max((len(one) for curves in columns for one in curves.values()), default=0)
    rows = []
    for epoch in range(1, epochs + 1):
        here = at(mine, epoch)
        row = [str(epoch), of_seeds(list(here.values()))]
        for _, _, curves in theirs:
            there = at(curves, epoch)
            apart = [here[seed] - there[seed] for seed in sorted(here.keys() & there.keys())]
            row += [of_seeds(list(there.values())), of_seeds(apart)]
        rows.append(row)
    header = ["epoch", ours["name"]]
    for side, name, _ in theirs:
        header += [f"{side} ({name})", "Arbalest - it"]
    which = accuracy_read(sides).capitalize()
    seeds = ", ".join(map(str, sorted(mine)))
    lines = [f"{which} accuracy in % after each epoch, seeds {seeds}: median (smallest to largest of the seeds):", ""]
    return lines + table(header, rows)
