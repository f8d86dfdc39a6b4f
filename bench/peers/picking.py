"""Finds the fastest arrangement of a peer on this machine, by measuring all of them."""

import dataclasses
import statistics
import time

from peers.arrangements import named, reason_against_other_pages, with_other_pages
from peers.command_line import say
from peers.job_file import JobError
from peers.onednn_kernels import told
from peers.workers import WorkerFailed

WARM_UP_STEPS = 3
PARTS = 5  # a measurement's steps are divided into parts, which give its spread
FINALISTS, FINALS = 3, 2  # fastest arrangements of one model, and how often they are measured again


class Picking:
    """Measures arrangements, some of them several times.

    `workers(arrangement)`: its processes (workers.py). `steps(arrangement)`: steps of a measurement. `budget`: seconds
    after which no other measurement begins.
    """

    def __init__(self, workers, steps, budget):
        self.workers, self.steps = workers, steps
        self.end = time.monotonic() + budget
        self.rates = {}  # for each arrangement that ran: images/s of the parts of all its measurements
        self.got = {}  # for each arrangement that ran: resources of the latest measurement's processes
        self.reference = {}  # for each arrangement that ran: {reference kernel: share}, or None
        self.skipped = []  # (name, reason)

    def measure(self, arrangement):
        if self.rates and time.monotonic() > self.end:
            again = " to measure it again" if arrangement in self.rates else ""
            self.skipped.append((arrangement.name, f"there was no time left{again}"))
            return
        try:
            with self.workers(arrangement) as workers:
                workers.images_per_second(WARM_UP_STEPS)
                parts = [workers.images_per_second(max(1, self.steps(arrangement) // PARTS)) for _ in range(PARTS)]
                self.got[arrangement] = workers.got()
                if arrangement not in self.reference:
                    self.reference[arrangement] = workers.reference_kernels()
        except (WorkerFailed, JobError) as failure:  # such as a mini-batch that cannot be divided among the ranks
            self.skipped.append((arrangement.name, str(failure)))
            return
        self.rates.setdefault(arrangement, []).extend(parts)
        first, median, third = statistics.quantiles(parts, n=4)
        slow = f"  oneDNN's reference kernels: {told(self.reference[arrangement])}" if self.reference[arrangement] else ""
        say(f"{arrangement.name:<44} {median:>10,.0f} images/s  spread {100 * (third - first) / median:.1f} %{slow}")

    def ranked(self, arrangements):
        """Returns the arrangements, fastest first."""
        ran = [arrangement for arrangement in arrangements if arrangement in self.rates]
        return sorted(ran, key=lambda arrangement: -statistics.median(self.rates[arrangement]))

    def run(self, found):
        """Measures all of `found`, and then the finalists in turns. Returns the finalists, fastest first. One finalist
        is the fastest of the first pass with the other kind of pages."""
        for arrangement in found:
            self.measure(arrangement)
        finalists = self.candidates(found)[:FINALISTS]
        if finalists:
            variant = with_other_pages(finalists[0])
            if reason := reason_against_other_pages(variant):
                self.skipped.append((variant.name, reason))
            else:
                self.measure(variant)
                finalists += [variant] if variant in self.rates else []
        for _ in range(FINALS if len(finalists) > 1 else 0):
            for arrangement in finalists:
                self.measure(arrangement)
        return self.ranked(finalists)

    def run_few(self, found):
        """Measures fewer, without the finals: every division of the cores in every type with channels last; then the
        fastest without channels last; then the faster of these two compiled. Returns those of one model, fastest first.
        """

        def variants(of, **changes):
            wanted = dataclasses.replace(of, name="", **changes)
            return [one for one in found if dataclasses.replace(one, name="") == wanted]

        first = [one for one in found if one.channels_last and one.compile_mode is None] or found
        for arrangement in first:
            self.measure(arrangement)
        for changes in ({"channels_last": False}, {"compile_mode": "default"}):
            for best in self.ranked(one for one in self.rates if one.trains_one_model)[:1]:
                for variant in variants(best, **changes):
                    if variant not in self.rates:
                        self.measure(variant)
        return self.candidates(found)

    def candidates(self, found):
        """Returns the arrangements that train one model, fastest first, without those that run reference kernels, which
        are no measure of what the framework can do; with them if there are no others."""
        ranked = self.ranked(one for one in found if one.trains_one_model)
        clean = [one for one in ranked if not self.reference[one]]
        for one in ranked if clean else ():
            if one not in clean:
                self.skipped.append((one.name, f"runs oneDNN's reference kernels: {told(self.reference[one])}"))
        return clean or ranked

    def result(self, arrangement):
        first, median, third = statistics.quantiles(self.rates[arrangement], n=4)
        return {
            "name": arrangement.name,
            "images_per_second": median,
            "spread": (third - first) / median,
            "measurements": len(self.rates[arrangement]) // PARTS,
            "trains_one_model": arrangement.trains_one_model,
            "got": self.got[arrangement],
            "reference_kernels": self.reference[arrangement],
        }

    def best_of_divisions(self):
        """Returns the names of the fastest arrangement for each division of the cores that trains one model. The best
        division may depend on the mini-batch."""
        best = {}
        for one in self.ranked(one for one in self.rates if one.trains_one_model):
            best.setdefault((one.processes, one.threads), one.name)
        return list(best.values())


def chosen_among(found, names, text):
    """Returns the arrangements in `names` (all if empty) that contain `text`. LookupError: a name does not exist."""
    if unknown := [name for name in names if named(found, name) is None]:
        raise LookupError(f"there is no arrangement '{unknown[0]}'; there are: {'; '.join(one.name for one in found)}")
    among = [named(found, name) for name in names] or found
    return [one for one in among if text in one.name]


def pick(picking, found, left_out, few=False):
    """Measures `found`, or few of them, and returns the result for programs, or None if nothing ran. `left_out`: [(name,
    reason)] of arrangements that cannot run here."""
    finalists = picking.run_few(found) if few else picking.run(found)
    skipped = left_out + picking.skipped
    for name, reason in skipped:
        say(f"skipped: {name}: {reason}")
    if not picking.rates:
        return None
    names = [one.name for one in finalists]
    return {
        "winner": names[0] if names else None,
        "second": names[1] if len(names) > 1 else None,
        "few": few,
        "fastest": picking.ranked(picking.rates)[0].name,
        "best_of_divisions": picking.best_of_divisions(),
        "results": [picking.result(arrangement) for arrangement in picking.rates],
        "skipped": [{"name": name, "reason": reason} for name, reason in skipped],
    }
