"""Measures how many cores a program uses during a turn, and how many others use. Processor time leaves out the time in
which a program waits for a core."""

import os
import pathlib
import statistics
import time

from comparison.machine import core_ticks

TICKS = os.sysconf("SC_CLK_TCK")  # per second


def numbers_of(process):
    """Returns the numbers of /proc/PID/stat after the state, which are its fields 4 and later (proc(5))."""
    return [int(word) for word in (process / "stat").read_text().rpartition(")")[2].split()[1:]]


def used_by(root):
    """Returns the seconds of processor time of a process and its descendants, also of ended ones that were waited for.
    None: the process is not there."""
    parents, seconds = {}, {}
    for process in pathlib.Path("/proc").iterdir():
        if not process.name.isdigit():
            continue
        try:
            numbers = numbers_of(process)
        except (FileNotFoundError, ProcessLookupError):  # it ended in between
            continue
        parents[int(process.name)] = numbers[0]
        seconds[int(process.name)] = sum(numbers[10:14]) / TICKS  # user, system, and both of ended children

    def belongs(process):
        while process in parents and process != root:
            process = parents[process]
        return process == root

    return sum(seconds[one] for one in seconds if belongs(one)) if root in seconds else None


class Meter:
    """Measures from its creation on. `pid`: of a process that is there."""

    def __init__(self, pid):
        self.pid = pid
        self.begin = time.monotonic(), core_ticks()[0], used_by(pid)

    def stop(self):
        """Returns the mean numbers of cores that the process ("own") and all others ("others") have used, or None if
        the process has ended."""
        own_now = used_by(self.pid)
        if own_now is None:
            return None
        then, busy_then, own_then = self.begin
        seconds, own = time.monotonic() - then, own_now - own_then
        all_busy = (core_ticks()[0] - busy_then) / TICKS
        return {"own": own / seconds, "others": max(0.0, all_busy - own) / seconds}


def per_core(side):
    """Returns the images/s per core in use for each turn of a side; None for turns that were not measured."""
    cores = side.get("cores") or [None] * len(side["rates"])
    return [rate / used["own"] if used and used["own"] > 0.0 else None for rate, used in zip(side["rates"], cores)]


def paired(ours, theirs):
    """Returns the ratios ours / theirs of turns that were measured on both sides."""
    return [a / b for a, b in zip(per_core(ours), per_core(theirs)) if a is not None and b is not None]


def median_of(side, whose):
    """Returns the median number of cores over the turns, or None. `whose`: "own" or "others"."""
    measured = [used[whose] for used in side.get("cores") or [] if used]
    return statistics.median(measured) if measured else None
