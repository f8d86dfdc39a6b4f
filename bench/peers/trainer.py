"""One rank of a peer. Its model is trained, and evaluated with its weights and with their average."""

import math
import warnings

import torch
from torch.optim.swa_utils import AveragedModel, get_ema_multi_avg_fn, update_bn

from peers.examples import Examples
from peers.job_file import JobError
from peers.models import make_model
from peers.onednn_kernels import reference_shares, said_to_stdout

STEPS_BETWEEN_AVERAGINGS = 8
TEST_BATCH = 500


class Trainer:
    """step() trains on the next mini-batch of an endless sequence. Every epoch is shuffled separately.

    With several ranks every mini-batch is divided among them, and DistributedDataParallel averages the gradients.
    `recipe`: the recipe of one rank (Recipe.arranged). `parts`: datasets.Parts.
    """

    has_average = True

    def __init__(self, recipe, parts, arrangement, seed, rank=0):
        self.recipe, self.arrangement, self.rank, self.ranks = recipe, arrangement, rank, arrangement.ranks
        if len(parts.train) < self.examples_of_step:
            raise JobError(f"a mini-batch of {self.examples_of_step} is larger than the {len(parts.train)} examples")
        device = arrangement.device
        layout = torch.channels_last if arrangement.channels_last else torch.contiguous_format
        self.plain_model = make_model(recipe.model, seed).to(device, memory_format=layout)
        self.average = AveragedModel(self.plain_model, multi_avg_fn=get_ema_multi_avg_fn(self.decay(parts.train)))
        self.model = self.plain_model
        if arrangement.is_parallel:
            with warnings.catch_warnings():  # newer versions of PyTorch name the option forward_sync_buffers
                warnings.simplefilter("ignore", FutureWarning)
                self.model = torch.nn.parallel.DistributedDataParallel(
                    self.model, broadcast_buffers=False, gradient_as_bucket_view=True
                )
        if arrangement.compile_mode is not None:
            self.model = torch.compile(self.model, mode=arrangement.compile_mode)
        self.optimizer = torch.optim.SGD(
            self.plain_model.parameters(),
            lr=self.first_rate(),
            momentum=recipe.momentum,
            nesterov=recipe.nesterov,
            weight_decay=recipe.weight_decay,
            fused=True,
        )
        self.loss = torch.nn.CrossEntropyLoss()
        torch.manual_seed(seed * 1000 + rank)  # seed of the augmentation
        self.examples = Examples(parts.train, device, layout, recipe.padding, recipe.flip)
        self.evaluated = {name: Examples(part, device, layout) for name, part in parts.evaluated.items()}
        self.judged, self.has_validation = parts.judged, parts.validation is not None
        self.orders = torch.Generator().manual_seed(seed)
        self.order, self.step_of_epoch, self.seen, self.steps = None, 0, 0, 0

    def decay(self, train):
        """Returns the decay of the average, so that its time constant is the recipe's number of epochs."""
        between = STEPS_BETWEEN_AVERAGINGS * self.recipe.batch * self.ranks
        return math.exp(-between / (self.recipe.average_epochs * len(train)))

    def first_rate(self):
        rate = self.recipe.schedule.at(0.0)
        return torch.tensor(rate, device=self.arrangement.device) if self.arrangement.is_graphed else rate

    @property
    def examples_of_step(self):
        return self.recipe.batch * self.ranks

    @property
    def steps_of_epoch(self):
        """Steps per epoch. The last examples are left out if they do not fill a mini-batch."""
        return len(self.examples) // self.examples_of_step

    def indices(self):
        """Returns the indices of this rank's part of the next mini-batch."""
        if self.order is None or self.step_of_epoch == self.steps_of_epoch:
            self.order = torch.randperm(len(self.examples), generator=self.orders).to(self.examples.labels.device)
            self.step_of_epoch = 0
        first = self.step_of_epoch * self.examples_of_step + self.rank * self.recipe.batch
        self.step_of_epoch += 1
        return self.order[first : first + self.recipe.batch]

    def step(self):
        """Returns the loss. The device may not have computed it yet."""
        self.set_rate(self.recipe.schedule.at(self.seen / len(self.examples)))
        loss = self.train(*self.examples.batch(self.indices()))
        self.seen += self.examples_of_step
        self.steps += 1
        if self.steps % STEPS_BETWEEN_AVERAGINGS == 0:
            self.average.update_parameters(self.plain_model)
        return loss

    def reference_kernels(self):
        """Trains on a mini-batch. Returns onednn_kernels.reference_shares, or None on a GPU."""
        if self.arrangement.device != "cpu":
            return None
        with said_to_stdout() as said, torch.backends.mkldnn.verbose(torch.backends.mkldnn.VERBOSE_ON):
            self.step()
        return reference_shares(said())

    def set_rate(self, rate):
        for group in self.optimizer.param_groups:
            group["lr"] = rate

    def train(self, images, labels):
        self.optimizer.zero_grad(set_to_none=True)
        with torch.autocast(self.arrangement.device, torch.bfloat16, self.arrangement.bfloat16):
            loss = self.loss(self.model(images), labels)
        loss.backward()
        self.optimizer.step()
        return loss

    def finish(self, loss):
        """Waits for the device and returns the mean of the ranks' losses, so that all ranks make the same decision."""
        loss = loss.detach().float().clone()
        self.add_up(loss)
        return loss.item() / self.ranks

    def evaluate(self, averaged=False, at_end=False):
        """Returns {"test_accuracy": ...}, or {"validation_accuracy": ...} after an epoch if there is a validation set.
        """
        if averaged:
            self.estimate_statistics()
            model = self.average.module
        else:
            model = self.plain_model
            self.agree_on_statistics(model)
        model.eval()
        name = self.judged(at_end)
        accuracy = self.accuracy(model, self.evaluated[name])
        model.train()
        return {f"{name}_accuracy": accuracy}

    def accuracy(self, model, examples):
        """Returns the accuracy on all examples. The ranks share the work."""
        right = torch.zeros((), dtype=torch.long, device=self.arrangement.device)
        with torch.inference_mode(), torch.autocast(self.arrangement.device, torch.bfloat16, self.arrangement.bfloat16):
            for first in range(self.rank * TEST_BATCH, len(examples), self.ranks * TEST_BATCH):
                images = examples.images[first : first + TEST_BATCH]
                right += (model(images).argmax(1) == examples.labels[first : first + TEST_BATCH]).sum()
        self.add_up(right)
        return right.item() / len(examples)

    def add_up(self, tensor):
        """Sums over all ranks, in place."""
        if self.arrangement.is_parallel:
            torch.distributed.all_reduce(tensor)

    def agree_on_statistics(self, model):
        """Sets batch norm's running statistics to the ranks' mean."""
        for buffer in model.buffers():
            if self.arrangement.is_parallel and buffer.is_floating_point():
                self.add_up(buffer)
                buffer /= self.ranks

    def estimate_statistics(self):
        """Estimates batch norm's statistics for the average. Each rank uses its share of the same examples."""
        device = self.examples.labels.device
        count = min(self.recipe.batch_norm_examples, len(self.examples)) // self.ranks
        mine = torch.arange(self.rank * count, (self.rank + 1) * count, device=device)
        with torch.autocast(self.arrangement.device, torch.bfloat16, self.arrangement.bfloat16):
            update_bn((self.examples.batch(part)[0] for part in mine.split(self.recipe.batch)), self.average.module)
        self.agree_on_statistics(self.average.module)


class GraphedTrainer(Trainer):
    """A trainer with forward, backward and update in one CUDA graph. The graph reads mini-batch and learning rate at
    fixed addresses."""

    def __init__(self, *args, **options):
        super().__init__(*args, **options)
        weights = {name: value.clone() for name, value in self.plain_model.state_dict().items()}
        images, labels = self.examples.batch(torch.arange(self.recipe.batch, device=self.examples.labels.device))
        self.static_images, self.static_labels = images.clone(), labels.clone()
        side = torch.cuda.Stream()
        side.wait_stream(torch.cuda.current_stream())
        with torch.cuda.stream(side):  # follows PyTorch's notes on CUDA graphs: warm up, then capture
            for _ in range(3):
                super().train(self.static_images, self.static_labels)
        torch.cuda.current_stream().wait_stream(side)
        self.graph = torch.cuda.CUDAGraph()
        with torch.cuda.graph(self.graph):
            self.static_loss = super().train(self.static_images, self.static_labels)
        self.plain_model.load_state_dict(weights)  # undoes the training of the warm-up
        for state in self.optimizer.state.values():
            state["momentum_buffer"].zero_()

    def set_rate(self, rate):
        for group in self.optimizer.param_groups:
            group["lr"].fill_(rate)

    def train(self, images, labels):
        self.static_images.copy_(images)
        self.static_labels.copy_(labels)
        self.graph.replay()
        return self.static_loss
