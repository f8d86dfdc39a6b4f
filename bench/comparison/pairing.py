"""Statistics of turns and runs: quartiles, ratios of pairs, epochs to a target, and time to accuracy."""

import math
import statistics

from peers.accuracy_target import epochs_to, judged


def summarize(values):
    """Returns median and quartiles, or None if there are no values."""
    if not values:
        return None
    first, median, third = statistics.quantiles(values, n=4, method="inclusive") if len(values) > 1 else values * 3
    return {"median": median, "first_quartile": first, "third_quartile": third}


def spread(summary):
    """Returns (third quartile - first quartile) / median."""
    return (summary["third_quartile"] - summary["first_quartile"]) / summary["median"]


def ratios(numerators, denominators):
    """Returns the ratio of each turn."""
    return [a / b for a, b in zip(numerators, denominators)]


def median_with_missing(values):
    """Returns the median, with None counting as larger than any number. It is None if at least half of the values are.
    """
    if not values:
        return None
    median = statistics.median(math.inf if value is None else value for value in values)
    return None if median == math.inf else median


def reached(target, run):
    """Returns (epoch, seconds, which) of the curve of a run that reaches the target first, or None.

    A run: {"curves": {name: [{"test_accuracy", "elapsed_seconds"}, ...]}}, one row per epoch. If the job has a
    validation set, the rows have "validation_accuracy", and that one is compared.
    """
    found = []
    for name, rows in run["curves"].items():
        epoch = epochs_to(target, [judged(row) for row in rows])
        if epoch is not None:
            found.append((rows[epoch - 1]["elapsed_seconds"], epoch, name))
    if not found:
        return None
    seconds, epoch, name = min(found)
    return epoch, seconds, name


def all_reach(target, runs, count):
    """Returns whether there are `count` runs and each reaches the target. A run that was cut off does not count."""
    return len(runs) == count and all(reached(target, run) for run in runs)


def overhead(run, hit):
    """Returns the seconds of an epoch divided by the seconds of its training. The rest is evaluation and other work.
    Uses the curve that reached the target (`hit`), or the first one if none did."""
    rows = run["curves"][hit[2]] if hit else next(iter(run["curves"].values()))
    training = sum(row["training_seconds"] for row in rows)
    return (rows[-1]["elapsed_seconds"] - run["preparation_seconds"]) / training


def epochs_of(side, target):
    """Returns epochs to the target: the median over the runs. A run that does not reach it counts as slower than all
    others."""
    return median_with_missing([hit[0] if (hit := reached(target, run)) else None for run in side["runs"]])


def times_by_seed(side, target, examples):
    """Returns {seed: [seconds, one per turn]} for the runs that reach the target: preparation + epochs to the target x
    seconds of an epoch at that turn's speed.

    `side`: {"rates": images/s of each turn, "runs": [...]}. Preparation, and the time beside training, are medians over
    the runs.
    """
    runs = [run for run in side["runs"] if any(run["curves"].values())]  # other runs diverged in their first epoch
    if not runs:
        return {}
    hits = [reached(target, run) for run in runs]
    share = statistics.median(overhead(run, hit) for run, hit in zip(runs, hits))
    preparation = statistics.median(run["preparation_seconds"] for run in runs)
    return {
        run["seed"]: [preparation + hit[0] * share * examples / rate for rate in side["rates"]]
        for run, hit in zip(runs, hits)
        if hit
    }


def times_to_accuracy(side, target, examples):
    """Returns the times of all seeds, or None if at least half of the runs do not reach the target."""
    if epochs_of(side, target) is None or not side["rates"]:
        return None
    return [seconds for times in times_by_seed(side, target, examples).values() for seconds in times]


def time_ratios(ours, theirs, target, examples):
    """Returns our times divided by theirs, for each turn and each seed that reaches the target on both sides. The list
    is empty if half of the runs of either side do not reach it."""
    if any(times_to_accuracy(side, target, examples) is None for side in (ours, theirs)):
        return []
    mine, others = (times_by_seed(side, target, examples) for side in (ours, theirs))
    return [ratio for seed in seeds_of_ratios(ours, theirs, target) for ratio in ratios(mine[seed], others[seed])]


def seeds_of_ratios(ours, theirs, target):
    """Returns the seeds for which both sides have reached the target."""
    mine, others = ({run["seed"] for run in side["runs"] if reached(target, run)} for side in (ours, theirs))
    return sorted(mine & others)


def end_to_end(ours, theirs, target):
    """Returns (seed, our seconds, their seconds) for the runs of each seed, with None if the target was not reached."""
    pairs = []
    for mine in ours["runs"]:
        for other in theirs["runs"]:
            if mine["seed"] == other["seed"]:
                seconds = [hit[1] if (hit := reached(target, run)) else None for run in (mine, other)]
                pairs.append((mine["seed"], *seconds))
    return pairs
