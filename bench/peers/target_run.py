"""Trains to an accuracy and measures the time, in any framework."""

import math
import time

from peers.accuracy_target import is_reached, judged


class Candidate:
    """A candidate for evaluation: the weights, or their average. Its time excludes the evaluation of the other one.
    """

    def __init__(self, name, averaged, target):
        self.name, self.averaged = name, averaged
        self.target, self.accuracies = target, []
        self.evaluation_seconds = 0.0
        self.reached = None  # epoch, seconds

    def evaluate(self, learner):
        start = time.perf_counter()
        accuracies = learner.evaluate(self.averaged, at_end=False)
        seconds = time.perf_counter() - start
        self.evaluation_seconds += seconds
        return accuracies | {"evaluation_seconds": seconds}


def train_to_target(learner, target, max_epochs, start, tell):
    """Trains until one candidate has reached the target (None: never), for at most this many epochs, and returns the
    result.

    `learner`: steps_of_epoch, has_average, has_validation, step(), finish(loss) -> float after waiting for the device,
    evaluate(averaged, at_end) -> {"test_accuracy": ...}, or {"validation_accuracy": ...} if there is a validation set
    and not `at_end`. The test set is then evaluated once, at the end of the run, as Arbalest does. `start`: when the
    clock started. `tell`: called with the row of each epoch.
    """
    loss = learner.step()  # belongs to the preparation, because it compiles if requested
    learner.finish(loss)
    preparation = time.perf_counter() - start
    candidates = [Candidate("weights", False, target)]
    if learner.has_average:
        candidates.append(Candidate("average", True, target))
    rows, status = [], "completed"
    for epoch in range(1, max_epochs + 1):
        begin = time.perf_counter()
        for _ in range(learner.steps_of_epoch - (1 if epoch == 1 else 0)):
            loss = learner.step()
        loss = learner.finish(loss)
        row = {"epoch": epoch, "training_seconds": time.perf_counter() - begin, "last_loss": loss}
        if not math.isfinite(loss):
            status = "diverged"
            break
        for candidate in candidates:
            row[candidate.name] = candidate.evaluate(learner)
        elapsed = time.perf_counter() - start
        add_clocks(candidates, row, elapsed)
        rows.append(row)
        tell(row)
        if any(candidate.reached for candidate in candidates):
            status = "target_reached"
            break
    result = summary(candidates, rows, status, preparation, time.perf_counter() - start)
    if learner.has_validation and rows:
        result["at_end"] = {one.name: learner.evaluate(one.averaged, at_end=True) for one in candidates}
    return result


def add_clocks(candidates, row, elapsed):
    evaluation = sum(candidate.evaluation_seconds for candidate in candidates)
    for candidate in candidates:
        result = row[candidate.name]
        result["elapsed_seconds"] = elapsed - (evaluation - candidate.evaluation_seconds)
        candidate.accuracies.append(judged(result))
        if is_reached(candidate.target, candidate.accuracies):
            candidate.reached = (row["epoch"], result["elapsed_seconds"])


def summary(candidates, rows, status, preparation, seconds):
    reached = [candidate for candidate in candidates if candidate.reached]
    first = min(reached, key=lambda candidate: candidate.reached[1], default=None)
    return {
        "status": status,
        "counts": first.name if first else None,
        "epochs_to_target": first.reached[0] if first else None,
        "time_to_accuracy_seconds": first.reached[1] if first else None,
        "preparation_seconds": preparation,
        "seconds_of_both": seconds,
        "epochs": len(rows),
        "epoch_rows": rows,
    }
