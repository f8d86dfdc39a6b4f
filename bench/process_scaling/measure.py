#!/usr/bin/env python3
"""Measures on this machine what the model of process_scaling needs, and what it is checked against.

    bench/process_scaling/measure.py bench/results/process-scaling-2026-11-27.jsonl

Writes rows of five parts: `models` (sizes and buckets), `links` (seconds of the all-reduce over shared memory, over
TCP, and over TCP at 1 Gbit/s), and a part for each model (images/s of small jobs in 1, 2 and 4 processes, of ResNet-50 in
one). All images are made up. A sum or a training runs several times (--turns), ResNet-50 once. Rows of the parts that
are measured replace the file's. Needs two cores that nothing else uses and, for the link with 1 Gbit/s, the right to make
a network namespace. That link has no rows otherwise.
"""

import argparse
import datetime
import functools
import json
import math
import os
import pathlib
import platform
import random
import resource
import shlex
import subprocess
import sys
import tempfile
import typing

ROOT = pathlib.Path(__file__).resolve().parents[2]
sys.path.insert(0, str(ROOT / "bench"))
from arrays import write_array  # noqa: E402
from launching import environment, launched  # noqa: E402

JOB = """model {{ zoo {{ {zoo} }} }}
data {{ npy {{ directory: "{directory}" classes: {classes} channels: {channels} height: {size} width: {size} }} }}
training {{ batch_size: {batch} max_epochs: 1 }}
optimizer {{ sgd {{ momentum: 0.9 }} }}
learning_rate {{ base: 0.01 }}
"""


class Model(typing.NamedTuple):
    zoo: str
    classes: int
    channels: int
    size: int  # pixels of a side
    batch: int
    images: int


MODELS = {"lenet": Model("lenet {}", 10, 1, 28, 32, 9_600),
          "resnet20": Model("resnet_cifar { depth: 20 }", 10, 3, 32, 64, 3_200),
          "resnet50": Model("resnet { depth: 50 }", 1000, 3, 224, 16, 64)}
PARTS = ("models", "links", *MODELS)
SCHEMES = {"sma": "sma", "s_sgd": "s_sgd", "local_sgd": "local_sgd{period: 16}"}
LINKS = ("shared memory", "TCP", "TCP at 1 Gbit/s")
WIRES = {"TCP at 1 Gbit/s": 125e6}  # bytes/s in each direction
# The loopback device carries both directions, so it gets twice the rate.
SHAPED = "ip link set lo up && tc qdisc add dev lo root tbf rate 2gbit burst 256kb latency 50ms && exec \"$@\""
TRANSPORTS = {"shared memory": "self,vader", "TCP": "self,tcp", "TCP at 1 Gbit/s": "self,tcp"}
# (vectors' lengths, floats of a message): the second list tells the cost of a message from that of its bytes.
SIZES = (("1000,10000,100000,430000,1000000,3000000,25000000", None), ("430000,3000000", 4096), ("100000,430000", 1024))


def over(link, command, processes):
    """Returns the command that starts `command` in so many processes, which a link joins."""
    if processes == 1:
        return command
    options = ["--mca", "btl", TRANSPORTS[link]]
    if link != "shared memory":
        options += ["--mca", "btl_tcp_if_include", "lo", "--mca", "pml", "ob1"]
    shaped = ["unshare", "--net", "sh", "-c", SHAPED, "sh"] if link in WIRES else []
    return [*shaped, *launched(command, processes, options)]


def output_of(command):
    return subprocess.run(command, stdout=subprocess.PIPE, env=environment(), cwd=ROOT, text=True, check=True).stdout


def can_shape():
    return subprocess.run(["unshare", "--net", "sh", "-c", SHAPED, "sh", "true"], check=False).returncode == 0


class Measuring:
    def __init__(self, arguments, folder):
        self.arguments, self.folder = arguments, folder
        self.program, self.bench = arguments.build / "arbalest", arguments.build / "bench" / "all_reduce_bench"
        self.links = [link for link in LINKS if link not in WIRES or can_shape()]
        for link in set(LINKS) - set(self.links):
            print(f"{link}: not measured, because there is no right to shape a network", file=sys.stderr)

    def row(self, part, command, **values):
        shown = shlex.join(str(word) for word in command)
        for path, name in ((self.folder, ""), (self.arguments.build, "$BUILD/"), (ROOT, "")):
            shown = shown.replace(f"{path}/", name)
        with open("/proc/cpuinfo", encoding="utf-8") as file:
            machine = next((line.split(":")[1].strip() for line in file if line.startswith("model name")), "unknown")
        commit = output_of(["git", "rev-parse", "--short", "HEAD"]).strip()
        return {"part": part, **values, "command": shown, "commit": commit, "date": str(datetime.date.today()),
                "machine": f"{os.cpu_count()} cores, {machine}, {platform.system()}", "load": os.getloadavg()[0]}

    def job(self, name):
        path, directory = self.folder / f"{name}.txtpb", self.folder / f"{name}-images"
        if not path.exists():
            write_images(directory, MODELS[name])
            path.write_text(JOB.format(directory=directory, **MODELS[name]._asdict()), encoding="utf-8")
        return str(path)

    def models(self):
        for model in MODELS:
            command = [self.program, "inspect", self.job(model), "--json"]
            inspection = json.loads(output_of(command))
            layers = [(layer["parameters"], layer["forward_flops"]) for layer in inspection["layers"]]
            yield self.row("models", command, model=model, elements=inspection["parameters"], buckets=buckets(layers))

    def all_links(self):
        for link, processes in [*((link, 2) for link in self.links), ("shared memory", 4)]:
            yield from self.links_of(link, processes, SIZES)

    def links_of(self, link, processes, lists):
        for sizes, chunk in lists:
            if link in WIRES:
                sizes = sizes.removesuffix(",25000000")
            command = [self.bench, "--only-ours", "--turns", "5", "--elements", *sizes.split(",")]
            command = over(link, command + (["--chunk", str(chunk)] if chunk else []), processes)
            launches = [self.sums(command) for _ in range(self.arguments.turns)]
            for elements in launches[0]:
                seconds, copying = (min(launch[elements][name] for launch in launches)
                                    for name in ("canonical", "memcpy"))
                yield self.row("links", command, link=link, processes=processes, elements=elements, chunk=chunk,
                               seconds=seconds, memcpy_seconds=copying)

    @staticmethod
    def sums(command):
        """Returns {elements: {method: seconds}}: the first quartile, because other work makes a turn only slower."""
        results = [json.loads(line) for line in output_of(command).splitlines()]
        return {result["elements"]: {each["name"]: each["seconds"]["first_quartile"] for each in result["results"]}
                for result in results}

    def trainings(self, model):
        layouts = {"lenet": [(1, 2, None), *((2, 1, link) for link in self.links), (1, 4, None), (4, 1, LINKS[0])],
                   "resnet20": [(1, 2, None), (2, 1, LINKS[0])],
                   "resnet50": [(1, 2, None)]}[model]
        for scheme in SCHEMES if model != "resnet50" else ["sma"]:
            runs = {layout: [] for layout in layouts}
            for turn in range(self.arguments.turns if model != "resnet50" else 1):
                for layout in layouts[:: 1 if turn % 2 == 0 else -1]:
                    runs[layout].append(self.train(model, scheme, *layout))
            for layout in layouts:
                yield self.training_row(model, scheme, layout, runs[layout])

    def training_row(self, model, scheme, layout, runs):
        processes, learners, link = layout
        speeds, processor_seconds = zip(*runs)
        return self.row(model, self.train_command(model, scheme, *layout), model=model, scheme=scheme, link=link,
                        processes=processes, learners=learners, batch=MODELS[model].batch, images_per_second=speeds,
                        images=MODELS[model].images, processor_seconds=processor_seconds)

    def train_command(self, model, scheme, processes, learners, link):
        settings = ["checkpoint.keep_last=0", f"synchronization={SCHEMES[scheme]}",
                    f"learners.per_device.fixed={learners}"]
        command = [self.program, "train", self.job(model), "--quiet", *(f"--set={setting}" for setting in settings)]
        return over(link, command, processes)

    def train(self, *case):
        """Returns images/s and the processor time of all processes."""
        with tempfile.TemporaryDirectory(dir=self.folder) as name:
            begin = resource.getrusage(resource.RUSAGE_CHILDREN)
            output_of([*self.train_command(*case), "--output", f"{name}/run"])
            end = resource.getrusage(resource.RUSAGE_CHILDREN)
            summary = json.loads(pathlib.Path(name, "run", "summary.json").read_text(encoding="utf-8"))
        print(*case, f"{summary['images_per_second']:.0f} images/s", file=sys.stderr, flush=True)
        return summary["images_per_second"], end.ru_utime + end.ru_stime - begin.ru_utime - begin.ru_stime


def buckets(layers, size=4 << 20):
    """Cuts the gradient as dataflow/gradient_parts.h does, the last layers first.

    `layers`: [(parameters, operations)] in the order of the forward pass. Returns [(floats, share of the backward pass
    that is done when the bucket is ready)].
    """
    total = sum(operations for _, operations in layers)
    found, floats, done = [], 0, 0
    for place, (parameters, operations) in reversed(list(enumerate(layers))):
        floats, done = floats + parameters, done + operations
        is_first_trained = not any(before for before, _ in layers[:place])
        if 4 * floats >= (size if found else size // 8) and parameters > 0 and not is_first_trained:
            found.append((floats, round(done / total, 4)))
            floats = 0
    return [*found, (floats, 1.0)]


def write_images(directory, model):
    """Writes random images as NumPy arrays."""
    directory.mkdir()
    numbers = random.Random(1)
    for split, rows in (("train", model.images), ("test", 16)):
        shape = (rows, model.channels, model.size, model.size)
        write_array(directory / f"{split}_images.npy", "|u1", shape, numbers.randbytes(math.prod(shape)))
        write_array(directory / f"{split}_labels.npy", "|u1", (rows,), bytes(i % 10 for i in range(rows)))


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("results", type=pathlib.Path)
    parser.add_argument("--build", type=pathlib.Path, default=ROOT / "build/release", help="the build tree")
    parser.add_argument("--turns", type=int, default=5)
    parser.add_argument("--parts", nargs="+", choices=PARTS, default=PARTS)
    arguments = parser.parse_args()
    arguments.build = arguments.build.resolve()
    lines = arguments.results.read_text(encoding="utf-8").splitlines() if arguments.results.exists() else []
    rows = {part: [row for row in map(json.loads, lines) if row["part"] == part] for part in PARTS}
    with tempfile.TemporaryDirectory() as name:
        measuring = Measuring(arguments, pathlib.Path(name))
        measure = {"models": measuring.models, "links": measuring.all_links,
                   **{model: functools.partial(measuring.trainings, model) for model in MODELS}}
        for part in arguments.parts:
            rows[part] = []
            for row in measure[part]():
                rows[part].append(row)
                text = "".join(json.dumps(row) + "\n" for each in PARTS for row in rows[each])
                arguments.results.write_text(text, encoding="utf-8")
    return 0


if __name__ == "__main__":
    sys.exit(main())
