#!/usr/bin/env python3
"""How fast does PyTorch train Arbalest's LeNet on a GPU, at the same batch size?

The peers of `gpu_bench learners`: PyTorch as one writes it first (eager), with the optimizer's update fused, compiled,
and with the whole step captured as a CUDA graph; each also with channels last. All get their data for nothing: the images
lie on the GPU as float32, normalized, and a mini-batch is a view of them.

Contenders take turns in one process. One JSON object goes to stdout, readable lines to stderr. Without PyTorch or a GPU
it says so and exits with 4, which means skipped.
"""

import argparse
import json
import statistics
import sys
import time

SKIPPED = 4

try:
    import torch
except ImportError as missing:
    print(f"skipped: {missing}", file=sys.stderr)
    sys.exit(SKIPPED)

EXAMPLES = 20_000


def lenet():
    """Caffe's LeNet with 431,080 parameters, as dataflow/models/lenet.cc has it."""
    nn = torch.nn
    return nn.Sequential(
        nn.Conv2d(1, 20, 5), nn.MaxPool2d(2), nn.Conv2d(20, 50, 5), nn.MaxPool2d(2),
        nn.Flatten(), nn.Linear(800, 500), nn.ReLU(), nn.Linear(500, 10))


class Trainer:
    """A model with its optimizer and data; step() trains it by one mini-batch."""

    image = (1, 28, 28)
    examples = EXAMPLES

    def network(self):
        return lenet()

    def __init__(self, batch, device, channels_last=False, compiled=False, fused=None):
        layout = torch.channels_last if channels_last else torch.contiguous_format
        torch.manual_seed(1)
        self.model = self.network().to(device, memory_format=layout)
        self.loss = torch.nn.CrossEntropyLoss()
        options = {} if fused is None else {"fused": fused}  # older versions know none
        self.optimizer = torch.optim.SGD(self.model.parameters(), lr=0.001, momentum=0.9, weight_decay=5e-4, **options)
        self.images = torch.randn(self.examples, *self.image, device=device).contiguous(memory_format=layout)
        self.labels = torch.randint(10, (self.examples,), device=device)
        self.batch = batch
        self.next = 0
        if compiled:
            self.model = torch.compile(self.model)

    def slice(self):
        """The next mini-batch."""
        first = self.next
        self.next = first + self.batch if first + 2 * self.batch <= self.examples else 0
        return self.images[first:first + self.batch], self.labels[first:first + self.batch]

    def train(self, images, labels):
        self.optimizer.zero_grad(set_to_none=True)
        loss = self.loss(self.model(images), labels)
        loss.backward()
        self.optimizer.step()
        return loss

    def step(self):
        return self.train(*self.slice())


class GraphedTrainer(Trainer):
    """The same with the whole step in one CUDA graph, which reads its mini-batch at a fixed place."""

    def __init__(self, *args, **options):
        super().__init__(*args, **options)
        images, labels = self.slice()
        self.static_images, self.static_labels = images.clone(), labels.clone()
        side = torch.cuda.Stream()
        side.wait_stream(torch.cuda.current_stream())
        with torch.cuda.stream(side):  # as PyTorch's notes on CUDA graphs ask: warm up, then capture
            for _ in range(3):
                self.train(self.static_images, self.static_labels)
        torch.cuda.current_stream().wait_stream(side)
        self.graph = torch.cuda.CUDAGraph()
        with torch.cuda.graph(self.graph):
            self.static_loss = self.train(self.static_images, self.static_labels)

    def step(self):
        images, labels = self.slice()
        self.static_images.copy_(images)
        self.static_labels.copy_(labels)
        self.graph.replay()
        return self.static_loss


def contenders(arguments):
    """Name, and a function that makes the trainer."""
    yield "eager", lambda: Trainer(arguments.batch, arguments.device)
    yield "eager, channels last", lambda: Trainer(arguments.batch, arguments.device, channels_last=True)
    if arguments.device == "cpu":
        return
    yield "eager, fused update", lambda: Trainer(arguments.batch, arguments.device, fused=True)
    yield "CUDA graph", lambda: GraphedTrainer(arguments.batch, arguments.device, fused=True)
    yield "CUDA graph, channels last", lambda: GraphedTrainer(arguments.batch, arguments.device, channels_last=True, fused=True)
    if arguments.compile:
        yield "compiled", lambda: Trainer(arguments.batch, arguments.device, compiled=True, fused=True)
        yield "compiled, channels last", lambda: Trainer(
            arguments.batch, arguments.device, channels_last=True, compiled=True, fused=True)


def synchronize(device):
    if device != "cpu":
        torch.cuda.synchronize()


def seconds_of(trainer, steps, device):
    synchronize(device)
    start = time.perf_counter()
    for _ in range(steps):
        loss = trainer.step()
    synchronize(device)
    elapsed = time.perf_counter() - start
    if not torch.isfinite(loss).item():
        raise RuntimeError("the loss is not finite")
    return elapsed


def prepared(arguments):
    """Trainers that have run a little, and the number of steps that fill a turn; the reasons why others cannot run."""
    ready, failed = [], []
    for name, make in contenders(arguments):
        try:
            start = time.perf_counter()
            trainer = make()
            seconds_of(trainer, 10, arguments.device)
            step = seconds_of(trainer, 20, arguments.device) / 20
            ready.append((name, trainer, max(1, int(arguments.seconds / step))))
            print(f"{name}: ready after {time.perf_counter() - start:.1f} s", file=sys.stderr)
        except Exception as error:  # a compiler is missing, ...: the others can still be measured
            failed.append({"name": name, "reason": str(error).strip().splitlines()[0] if str(error) else repr(error)})
            print(f"{name}: cannot run: {failed[-1]['reason']}", file=sys.stderr)
    return ready, failed


def measure(arguments):
    ready, failed = prepared(arguments)
    samples = {name: [] for name, _, _ in ready}
    for turn in range(arguments.turns):
        for name, trainer, steps in ready if turn % 2 == 0 else reversed(ready):
            seconds = seconds_of(trainer, steps, arguments.device)
            samples[name].append(steps * arguments.batch / seconds)
    results = []
    for name, rates in samples.items():
        first, median, third = statistics.quantiles(rates, n=4)
        results.append({"name": name, "images_per_second": median, "spread": (third - first) / median})
        print(f"{name:<28} {median:>12,.0f} images/s  spread {100 * (third - first) / median:.1f} %", file=sys.stderr)
    return results, failed


def main():
    parser = argparse.ArgumentParser(description="PyTorch's images/s on LeNet, b = 32, on one GPU.")
    parser.add_argument("--batch", type=int, default=32, help="examples of a mini-batch (32)")
    parser.add_argument("--turns", type=int, default=15, help="turns of each contender (15)")
    parser.add_argument("--seconds", type=float, default=0.2, help="length of a turn (0.2)")
    parser.add_argument("--tf32", action="store_true", help="TF32 instead of FP32 multiplications")
    parser.add_argument("--no-compile", dest="compile", action="store_false", help="leave out torch.compile, which takes long to start")
    parser.add_argument("--device", default="cuda", help="'cpu' only tries the program out")
    arguments = parser.parse_args()
    if arguments.device != "cpu" and not torch.cuda.is_available():
        print("skipped: PyTorch finds no GPU", file=sys.stderr)
        sys.exit(SKIPPED)
    torch.backends.cudnn.benchmark = True
    torch.backends.cudnn.allow_tf32 = arguments.tf32
    torch.backends.cuda.matmul.allow_tf32 = arguments.tf32

    results, failed = measure(arguments)
    gpu = "" if arguments.device == "cpu" else torch.cuda.get_device_name()
    print(json.dumps({"question": "PyTorch peers", "pytorch": torch.__version__, "gpu": gpu, "batch": arguments.batch,
                      "tf32": arguments.tf32, "turns": arguments.turns, "results": results, "failed": failed}))


if __name__ == "__main__":
    main()
