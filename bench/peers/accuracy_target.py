"""Decides when a target accuracy counts as reached (train/context/accuracy_target.h)."""

import statistics


def judged(row):
    """Returns the accuracy that is compared with a target, on the validation set if there is one, or on the test set.
    """
    return row["validation_accuracy"] if "validation_accuracy" in row else row["test_accuracy"]


def is_reached(target, accuracies):
    """Returns whether the lower median of the last five accuracies is at or above the target. Before five epochs there
    are fewer accuracies. A target of None is never reached."""
    return target is not None and statistics.median_low(accuracies[-5:]) >= target


def epochs_to(target, accuracies):
    """Returns the epoch, counted from 1, at which the target is reached, or None."""
    ends = range(1, len(accuracies) + 1)
    return next((end for end in ends if is_reached(target, accuracies[:end])), None)
