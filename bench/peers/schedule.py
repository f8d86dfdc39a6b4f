"""Learning rates by progress, as in scheduler/replicas/learning_rate.h, and their scaling with the mini-batch."""

import dataclasses
import math

from peers.job_file import JobError

# The scaling of the learning rate for a mini-batch `factor` times the job's, with the names of learning_rate.proto.
RULES = {"LINEAR": lambda factor: factor, "SQRT": math.sqrt, "KEEP": lambda factor: 1.0}


@dataclasses.dataclass(frozen=True)
class Schedule:
    """A learning rate by progress: examples seen / examples of the training set."""

    base: float
    drops: tuple = ()  # multistep: (epoch, factor)
    one_cycle: tuple = ()  # (epochs, rising, start_factor, final_factor)
    warm_up_epochs: float = 0.0
    warm_up_start: float = 1.0  # factor of the learning rate at the start of the warm-up

    def at(self, progress):
        rate = self.base
        for epoch, factor in self.drops:
            if epoch <= progress:
                rate *= factor
        if self.one_cycle:
            epochs, rising, start, final = self.one_cycle
            share = min(1.0, max(0.0, progress - self.warm_up_epochs) / epochs)
            if share < rising:
                rate *= anneal(start, 1.0, share / rising)
            else:
                rate *= anneal(1.0, final, (share - rising) / (1.0 - rising))
        if progress < self.warm_up_epochs:
            rate *= self.warm_up_start + (1.0 - self.warm_up_start) * progress / self.warm_up_epochs
        return rate

    def scaled(self, factor, max_epochs, rule="LINEAR"):
        """Returns the schedule for a mini-batch that is `factor` times as large (LINEAR: Goyal et al. 2017). A larger
        rate warms up from the unscaled one over the first tenth of the epochs, unless the schedule itself rises slowly.
        """
        times = RULES[rule](factor)
        if times == 1.0:
            return self
        scaled = dataclasses.replace(self, base=self.base * times)
        if times < 1.0 or self.one_cycle or self.warm_up_epochs > 0.0:
            return scaled
        return dataclasses.replace(scaled, warm_up_epochs=max_epochs / 10.0, warm_up_start=1.0 / times)

    @property
    def rise(self):
        """Describes the warm-up of the learning rate for a page."""
        if self.warm_up_epochs > 0.0:
            return f"warm-up of {self.warm_up_epochs:g} epochs"
        if self.one_cycle:
            epochs, rising, _, _ = self.one_cycle
            return f"one_cycle rises for {epochs * rising:g} epochs"
        return "no warm-up"


def anneal(first, last, share):
    """Returns a value on half a cosine from `first` to `last`."""
    return last + (first - last) * (1.0 + math.cos(math.pi * share)) / 2.0


def base_of(rate, batch):
    """Returns the base learning rate of one learner with mini-batches of `batch` examples; None if it is missing."""
    base = rate.take("base")
    for_batch_size = rate.take("for_batch_size")
    rule = rate.take("with_batch_size", "LINEAR")
    limit = rate.take("limit", math.inf)
    if base is None or batch is None:
        return base
    return min(base * RULES[rule](batch / (for_batch_size or batch)), max(limit, base))


def read_schedule(rate, max_epochs, batch):
    """Returns the schedule of the job's `learning_rate` for mini-batches of `batch` examples. The caller must have taken
    with_learners before.
    """
    at = rate.at
    warm_up = rate.message("warm_up")
    warm_up_epochs = warm_up.take("epochs", 0.0)
    warm_up_start = warm_up.take("start_factor", 0.1)
    multistep = rate.message("multistep")
    drops = []
    for drop in multistep.take_all("drop"):
        drops.append((drop.take("epoch"), drop.take("factor")))
        drop.finish()
    cycle = ()
    if "one_cycle" in rate.values:
        one_cycle = rate.message("one_cycle")
        cycle = (
            one_cycle.take("epochs", max_epochs - warm_up_epochs),
            one_cycle.take("rising", 0.3),
            one_cycle.take("start_factor", 0.04),
            one_cycle.take("final_factor", 4e-6),
        )
        one_cycle.finish()
    schedule = Schedule(base_of(rate, batch), tuple(drops), cycle, warm_up_epochs, warm_up_start)
    for message in (rate.message("fixed"), warm_up, multistep, rate):
        message.finish()
    if schedule.base is None:
        raise JobError("the peers need learning_rate.base; the job does not say it", at)
    return schedule
