"""What a peer trains, and how: read from the same job file as Arbalest's run, so that neither can differ unnoticed."""

import dataclasses
import math
import pathlib

from peers.job_file import JobError, parse

AVERAGE_EPOCHS = 0.5  # where the job has no moving average


@dataclasses.dataclass(frozen=True)
class Schedule:
    """A learning rate by progress: examples seen / examples of the training set (scheduler/learning_rate.h)."""

    base: float
    drops: tuple = ()  # multistep: (epoch, factor)
    one_cycle: tuple = ()  # (epochs, rising, start_factor, final_factor)
    warm_up_epochs: float = 0.0
    warm_up_start: float = 1.0  # share of the rate with which the warm-up begins

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

    def for_ranks(self, ranks, max_epochs):
        """Linear scaling for a mini-batch that is so many times as large (Goyal et al. 2017), with a warm-up from the
        rate of one rank during the first tenth of the epochs, unless the schedule rises slowly by itself."""
        if ranks == 1:
            return self
        scaled = dataclasses.replace(self, base=self.base * ranks)
        if self.one_cycle or self.warm_up_epochs > 0.0:
            return scaled
        return dataclasses.replace(scaled, warm_up_epochs=max_epochs / 10.0, warm_up_start=1.0 / ranks)


def anneal(first, last, share):
    """From `first` to `last` along half a cosine."""
    return last + (first - last) * (1.0 + math.cos(math.pi * share)) / 2.0


@dataclasses.dataclass(frozen=True)
class Recipe:
    job: str
    model: str  # "lenet", "resnet20"
    dataset: str  # its folder below the data root: "mnist", "cifar-10"
    padding: int  # pixels around an image before it is cropped to its size at random
    flip: bool  # half of the images, horizontally
    batch: int  # examples, of each rank
    max_epochs: int
    target: float  # None: the job names none
    batch_norm_examples: int  # from which batch norm's statistics of an average are estimated, as Arbalest does it for z
    average_epochs: float  # how far back the average of the weights remembers that is evaluated beside them
    momentum: float
    nesterov: bool
    weight_decay: float
    schedule: Schedule


def read_recipe(path, max_epochs=None):
    """`max_epochs`: in place of the job's; schedules that last as long as the job follow it."""
    try:
        return recipe_of(pathlib.Path(path).read_text(), max_epochs)
    except (OSError, JobError) as error:
        raise JobError(f"{path}: {error}") from error


def recipe_of(text, max_epochs=None):
    job = parse(text)
    training = job.message("training")
    data = job.message("data")
    augmentation = data.message("augmentation")
    sgd = sgd_of(job)
    epochs_of_job = training.take("max_epochs")
    max_epochs = max_epochs or epochs_of_job
    recipe = Recipe(
        job=job.take("name"),
        model=model_of(job),
        dataset=dataset_of(data),
        padding=augmentation.take("padding", 0),
        flip=augmentation.take("horizontal_flip", False),
        batch=training.take("batch_size"),
        max_epochs=max_epochs,
        target=training.take("target_accuracy"),
        batch_norm_examples=training.take("batch_norm_examples", 2048),
        average_epochs=training.take("moving_average_epochs", 0.0) or AVERAGE_EPOCHS,
        momentum=sgd.take("momentum", 0.0),
        nesterov=sgd.take("nesterov", False),
        weight_decay=sgd.take("weight_decay", 0.0),
        schedule=schedule_of(job, max_epochs),
    )
    training.take("seed")
    for name in ("synchronization", "learners", "devices"):  # Arbalest's own way of doing the same
        job.take_all(name)
    for message in (training, augmentation, data, sgd, job):
        message.finish()
    missing = [name for name in ("job", "batch", "max_epochs") if getattr(recipe, name) is None]
    if missing:
        raise JobError(f"the peers need the job to say {', '.join(missing)}")
    return recipe


def model_of(job):
    model = job.message("model")
    zoo = model.message("zoo")
    model.finish()
    resnet, lenet = zoo.take("resnet_cifar"), zoo.take("lenet")
    zoo.finish()
    if lenet is not None:
        lenet.finish()
        return "lenet"
    if resnet is None:
        raise JobError("the peers know lenet and resnet_cifar only")
    depth = resnet.take("depth")
    resnet.finish()
    return f"resnet{depth}"


def dataset_of(data):
    found = [
        (source, folder) for source, folder in (("mnist", "mnist"), ("cifar10", "cifar-10")) if source in data.values
    ]
    if not found:
        raise JobError("the peers know the data mnist and cifar10 only")
    source, folder = found[0]
    data.take(source).finish()
    return folder


def sgd_of(job):
    optimizer = job.message("optimizer")
    sgd = optimizer.message("sgd")
    optimizer.finish()
    return sgd


def schedule_of(job, max_epochs):
    rate = job.message("learning_rate")
    warm_up = rate.message("warm_up")
    warm_up_epochs = warm_up.take("epochs", 0.0)
    warm_up_start = warm_up.take("start_factor", 0.1)
    multistep = rate.message("multistep")
    drops = []
    for drop in multistep.take_all("drop"):
        drops.append((drop.take("epoch"), drop.take("factor")))
        drop.finish()
    one_cycle = rate.take("one_cycle")
    cycle = ()
    if one_cycle is not None:
        cycle = (
            one_cycle.take("epochs", max_epochs - warm_up_epochs),
            one_cycle.take("rising", 0.3),
            one_cycle.take("start_factor", 0.04),
            one_cycle.take("final_factor", 4e-6),
        )
        one_cycle.finish()
    schedule = Schedule(rate.take("base"), tuple(drops), cycle, warm_up_epochs, warm_up_start)
    rate.take("with_learners")  # how Arbalest's rate follows its learners
    rate.take("fixed")
    for message in (warm_up, multistep, rate):
        message.finish()
    if schedule.base is None:
        raise JobError("the peers need learning_rate.base")
    return schedule
