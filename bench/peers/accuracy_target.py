"""When a target accuracy counts as reached (jobs/run/accuracy_target.h)."""


def judged(row):
    """The accuracy that a target is compared with: on the validation set where there is one, else on the test set."""
    return row.get("validation_accuracy", row["test_accuracy"])


class AccuracyTarget:
    """Reached when the lower median of the last five accuracies, fewer during the first five, is at it."""

    def __init__(self, target):
        self.target = target
        self.last = []

    def add(self, accuracy):
        """Adds an evaluation; whether the target is reached now. A target of None never is."""
        self.last = [*self.last, accuracy][-5:]
        return self.target is not None and sorted(self.last)[(len(self.last) - 1) // 2] >= self.target


def epochs_to(target, accuracies):
    """The epoch, from 1, at which the target is reached; None if it is not."""
    rule = AccuracyTarget(target)
    for epoch, accuracy in enumerate(accuracies, 1):
        if rule.add(accuracy):
            return epoch
    return None
