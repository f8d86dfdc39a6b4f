"""The training recipe of a peer. It is read from the job file of Arbalest's run, so that both always train the same.
"""

import dataclasses
import pathlib

from peers import datasets
from peers.job_file import JobError, parse
from peers.schedule import Schedule, read_schedule

AVERAGE_EPOCHS = 0.5  # if the job has no moving average
SOURCES = {"mnist": "mnist", "cifar10": "cifar-10"}  # name of a dataset in jobs -> its folder below the data root


@dataclasses.dataclass(frozen=True)
class Recipe:
    job: str
    model: str  # "lenet", "resnet20"
    dataset: str  # folder below the data root: "mnist", "cifar-10"
    padding: int  # pixels that are added around an image before it is cropped to its size at random
    flip: bool  # mirrors half of the images left to right
    validation: tuple  # (fraction, seed) of the validation split, which is not trained on; None: no split
    batch: int  # examples per step and rank
    max_epochs: int
    target: float  # None: the job has no target
    precision: str  # "FP32", "TF32" or "BF16"; None: the job names none or AUTO, so each side uses its fastest
    batch_norm_examples: (
        int  # examples for estimating the average's batch norm statistics, as Arbalest does for z
    )
    average_epochs: float  # time constant of the average of the weights, which is evaluated besides the weights
    momentum: float
    nesterov: bool
    weight_decay: float
    schedule: Schedule
    coupling: dict  # text on how Arbalest couples many learners; a peer does not use it

    def arranged(self, ranks, mini_batch=None, rule="LINEAR"):
        """Returns the recipe of one of `ranks` that share every step of `mini_batch` examples (None: each rank has the
        job's mini-batch). The learning rate is scaled with the mini-batch by `rule`."""
        total = mini_batch or self.batch * ranks
        if total % ranks:
            raise JobError(f"a mini-batch of {total} examples cannot be divided among {ranks} ranks")
        schedule = self.schedule.scaled(total / self.batch, self.max_epochs, rule)
        return dataclasses.replace(self, batch=total // ranks, schedule=schedule)


def read_recipe(path, max_epochs=None):
    """`max_epochs`: replaces the job's. Schedules that end with the job are adapted."""
    try:
        return recipe_of(pathlib.Path(path).read_text(), max_epochs)
    except OSError as error:
        raise JobError(f"{path}: error: {error.strerror}") from error
    except JobError as error:
        place = "".join(f":{number}" for number in error.at or ())
        raise JobError(f"{path}{place}: error: {error}", error.at) from error


def recipe_of(text, max_epochs=None):
    job = parse(text)
    training, data, rate = job.message("training"), job.message("data"), job.message("learning_rate")
    sgd = sgd_of(job)
    coupling = coupling_of(job, rate)
    epochs_of_job = training.take("max_epochs")
    max_epochs = max_epochs or epochs_of_job
    training.take("seed")  # a peer gets the seed from --seed
    training.take("kernels")  # a peer has kernels of its own
    dataset, padding, flip, validation = data_of(data)
    batch = training.take("batch_size")
    precision = training.take_one_of("precision", (None, "FP32", "TF32", "BF16", "AUTO"))
    training.take_one_of("batch_norm_statistics", (None, "REESTIMATED"))
    training.take_one_of("on_divergence", (None, "STOP"))  # a peer does not go back
    recipe = Recipe(
        job=job.take("name"),
        model=model_of(job),
        dataset=dataset,
        padding=padding,
        flip=flip,
        validation=validation,
        batch=batch,
        max_epochs=max_epochs,
        target=training.take("target_accuracy"),
        precision=None if precision == "AUTO" else precision,
        batch_norm_examples=training.take("batch_norm_examples", 2048),
        average_epochs=training.take("moving_average_epochs", 0.0) or AVERAGE_EPOCHS,
        momentum=sgd.take("momentum", 0.0),
        nesterov=sgd.take("nesterov", False),
        weight_decay=sgd.take("weight_decay", 0.0),
        schedule=read_schedule(rate, max_epochs, batch),
        coupling=coupling,
    )
    job.message("checkpoint")  # a peer saves none, and what Arbalest saves does not change its model
    job.message("processes")  # a peer is one process
    for message in (training, sgd, job):
        message.finish()
    missing = [name for name in ("job", "batch", "max_epochs") if getattr(recipe, name) is None]
    if missing:
        raise JobError(f"the peers need the job to say {', '.join(missing)}")
    return recipe


def coupling_of(job, rate):
    """Returns how Arbalest synchronizes its learners. A peer always trains by plain or data-parallel SGD, so any
    synchronization is accepted, and the results name it next to the peer's."""
    synchronization = job.message("synchronization")
    learners = job.message("learners")
    devices = job.take_all("devices")
    return {
        "synchronization": synchronization.text() or "the default",
        "learners": learners.text() or "the default",
        "devices": ", ".join(map(str, devices)) or "the default",
        "with_learners": rate.take("with_learners", "the default"),
    }


def model_of(job):
    model = job.message("model")
    zoo = model.message("zoo")
    model.finish()
    if "lenet" in zoo.values:
        lenet = zoo.message("lenet")
        lenet.take_one_of("batch_norm", (None, False))
        lenet.finish()
        zoo.finish()
        return "lenet"
    if "resnet_cifar" not in zoo.values:
        zoo.finish()
        raise JobError("the peers know the models lenet and resnet_cifar only", zoo.at)
    resnet = zoo.message("resnet_cifar")
    at = resnet.at
    depth = resnet.take("depth")
    resnet.finish()
    zoo.finish()
    if depth is None:
        raise JobError("the peers need the depth of resnet_cifar", at)
    return f"resnet{depth}"


def data_of(data):
    """Returns (dataset, padding, flip, validation)."""
    found = [name for name in SOURCES if name in data.values]
    if not found:
        raise JobError("the peers know the data mnist and cifar10 only", data.at)
    source = data.message(found[0])
    folder = SOURCES[found[0]]
    source.take_one_of("directory", (None, folder))
    source.finish()
    check_normalization(data, datasets.SOURCES[folder])
    augmentation = data.message("augmentation")
    padding, flip = augmentation.take("padding", 0), augmentation.take("horizontal_flip", False)
    augmentation.take_one_of("cutout", (None, 0))
    augmentation.finish()
    validation = validation_of(data) if "validation" in data.values else None
    data.take_all("class_names")  # they change no training
    data.finish()
    return folder, padding, flip, validation


def validation_of(data):
    """Returns (fraction, seed). data.proto has the bounds, the default and the rule."""
    split = data.message("validation")
    fraction, seed = split.take("fraction"), split.take("seed", 1)
    split.finish()
    if not isinstance(fraction, (int, float)) or not 0.0 < fraction <= 0.5:
        raise JobError("the peers need data.validation.fraction in (0, 0.5]", split.at)
    return fraction, seed


def check_normalization(data, source):
    """Checks that the job has Arbalest's default normalization, which is the only one that peers support."""
    place = data.place("normalization")
    normalization = data.message("normalization")
    for name, usual in (("mean", source.mean), ("stddev", source.stddev)):
        said = tuple(normalization.take_all(name))
        if said and said != usual:
            raise JobError(f"the peers normalize by the dataset's own {name} only, {usual}", place)
    normalization.finish()


def sgd_of(job):
    optimizer = job.message("optimizer")
    sgd = optimizer.message("sgd")
    optimizer.finish()
    return sgd
