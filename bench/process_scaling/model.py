"""The model: how long a round takes on P machines, from the cost of messages and of computing.

The all-reduce is the one of engine/process/operations/all_reduce.h. Each rank owns a slice of the vector, gets the
other ranks' parts of it, and sends the sum to all. With n floats and P ranks, a rank sends

    messages = 2 (P - 1) x chunks of a slice        bytes = 2 x 4 n (P - 1) / P
    work = messages x per_message + bytes x per_byte          processor time; adding is a part of per_byte
    seconds = 2 x latency + max(work, bytes / wire)

The messages to different ranks are under way at the same time, so the latency counts once for the parts and once for
the sums. Not in the model: congested switches, ranks of different speed, and lost packets.
"""

import dataclasses
import itertools
import math

CHUNK, WINDOW, MOST_RECEIVED, SHORTEST_CHUNK = 1 << 16, 4, 1 << 22, 1024  # floats, as in all_reduce.h
FORWARD = 1 / 3  # share of a mini-batch's operations; the backward pass has the rest
PERIOD = 16  # of local_sgd
SCHEMES = ("sma", "s_sgd", "local_sgd")


@dataclasses.dataclass(frozen=True)
class Link:
    name: str
    latency: float  # seconds from a send to the moment when the receiver sees the message, beside the work
    per_message: float  # seconds of the communication thread
    per_byte: float  # the same
    wire: float = math.inf  # bytes/s in each direction

    def over(self, name, latency, bits_per_second):
        """Returns this link's software over a network with this latency and speed."""
        return Link(name, self.latency + latency, self.per_message, self.per_byte, bits_per_second / 8)


@dataclasses.dataclass(frozen=True)
class Machine:
    cores: int
    processes: int  # of the run, on one machine; their learners use all cores

    @property
    def load(self):
        """How much longer a round becomes by a second of work of each communication thread."""
        return self.processes / self.cores


@dataclasses.dataclass(frozen=True)
class Job:
    elements: int  # floats of the model
    buckets: list  # [(floats, share of the backward pass that is done when the bucket is ready)], in their order
    seconds: dict  # {scheme: seconds of a mini-batch of every learner in one process}
    per_byte: float  # seconds of a core that moves a byte of vectors as long as the model, while the others do so, too


@dataclasses.dataclass(frozen=True)
class Exchange:
    seconds: float
    work: float


def chunk_of(ranks):
    return min(CHUNK, max(SHORTEST_CHUNK, MOST_RECEIVED // (max(ranks - 1, 1) * WINDOW)))


def traffic(floats, ranks, chunk=None):
    """Returns the messages and bytes that a rank sends."""
    slice_floats = math.ceil(floats / ranks)
    messages = 2 * (ranks - 1) * math.ceil(slice_floats / (chunk or chunk_of(ranks)))
    return messages, 2 * 4 * floats * (ranks - 1) / ranks


def all_reduce(link, floats, ranks, machine, chunk=None):
    if ranks == 1:
        return Exchange(0.0, 0.0)
    messages, sent = traffic(floats, ranks, chunk)
    work = messages * link.per_message + sent * link.per_byte
    return Exchange(2 * link.latency + max(work * max(1.0, machine.load), sent / link.wire), work)


def step_seconds(job, scheme, link, ranks, machine):
    """Seconds of a mini-batch of every learner."""
    alone = job.seconds[scheme]
    if ranks == 1:
        return alone
    if scheme == "s_sgd":
        return gradient_step(job, link, ranks, machine)
    exchange = all_reduce(link, job.elements, ranks, machine)
    passes = passes_seconds(job, machine)
    if scheme == "sma":  # averaging runs while the next gradient is computed
        return max(alone + machine.load * exchange.work + passes, exchange.seconds)
    return alone + (exchange.seconds + passes) / PERIOD


def passes_seconds(job, machine):
    """A process alone averages k replicas in one pass, which moves 4 (k + 3) bytes a float. One of several processes
    needs two passes, which move 4 (l + 7) for its l replicas (engine/passes/averaging.h)."""
    more_bytes = 28 * machine.processes - 12  # a float, on one machine
    return more_bytes * job.elements * job.per_byte / machine.cores


def gradient_step(job, link, ranks, machine):
    """Buckets of the gradient are summed one after the other while the backward pass goes on."""
    exchanges = [all_reduce(link, floats, ranks, machine) for floats, _ in job.buckets]
    computing = job.seconds["s_sgd"] + machine.load * sum(exchange.work for exchange in exchanges)
    end = 0.0
    for exchange, (_, done) in zip(exchanges, job.buckets):
        end = max(end, computing * (FORWARD + (1 - FORWARD) * done)) + exchange.seconds
    return max(end, computing)


def efficiency(job, scheme, link, ranks, machine):
    """Images/s of `ranks` processes over `ranks` times those of one."""
    return job.seconds[scheme] / step_seconds(job, scheme, link, ranks, machine)


def fit(name, points, wire=math.inf):
    """Fits a link to [(messages, bytes, seconds)] with least squares of the relative error. No cost is negative."""
    rows = [(2 / seconds, messages / seconds, sent / seconds) for messages, sent, seconds in points]
    best = None
    for used in itertools.chain.from_iterable(itertools.combinations(range(3), size) for size in (1, 2, 3)):
        values = solve([[sum(row[a] * row[b] for row in rows) for b in used] for a in used],
                       [sum(row[a] for row in rows) for a in used])
        if values is None or min(values) < 0:
            continue
        costs = [0.0, 0.0, 0.0]
        for place, value in zip(used, values):
            costs[place] = value
        error = sum((sum(cost * x for cost, x in zip(costs, row)) - 1) ** 2 for row in rows)
        if best is None or error < best[0]:
            best = (error, costs)
    return Link(name, *best[1], wire)


def solve(matrix, right):
    """Gauss elimination; None for a singular matrix."""
    rows = [[*row, value] for row, value in zip(matrix, right)]
    for column in range(len(rows)):
        pivot = max(range(column, len(rows)), key=lambda row: abs(rows[row][column]))
        if abs(rows[pivot][column]) <= 1e-12 * max(abs(value) for value in matrix[column]):
            return None
        rows[column], rows[pivot] = rows[pivot], rows[column]
        for row in range(len(rows)):
            if row != column:
                factor = rows[row][column] / rows[column][column]
                rows[row] = [value - factor * other for value, other in zip(rows[row], rows[column])]
    return [row[-1] / row[place] for place, row in enumerate(rows)]
