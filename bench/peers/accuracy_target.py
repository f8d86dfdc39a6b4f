"""Decides when a target accuracy counts as reached (train/context/accuracy_target.h)."""


def judged(row):
    """Returns the accuracy that is compared with a target, on the validation set if there is one, or on the test set.
    """
    return row["validation_accuracy"] if "validation_accuracy" in row else row["test_accuracy"]


class AccuracyTarget:
    """The target is reached when the lower median of the last five accuracies is at or above it. Before five epochs
    there are fewer accuracies."""

    def __init__(self, target):
        self.target = target
        self.last = []

    def add(self, accuracy):
        """Adds an evaluation and returns whether the target is reached now. A target of None is never reached."""
        self.last = [*self.last, accuracy][-5:]
        return self.target is not None and sorted(self.last)[(len(self.last) - 1) // 2] >= self.target


def epochs_to(target, accuracies):
    """Returns the epoch, counted from 1, at which the target is reached, or None."""
    rule = AccuracyTarget(target)
    for epoch, accuracy in enumerate(accuracies, 1):
        if rule.add(accuracy):
            return epoch
    return None
