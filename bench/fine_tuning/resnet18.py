#!/usr/bin/env python3
"""ResNet-18 in PyTorch: trains it on CIFAR-10, writes its weights, and fine-tunes them on ten classes of Caltech-101.

    resnet18.py pretrain FILE.safetensors --data-root DIR [--epochs 10]
    resnet18.py fine-tune FILE.safetensors --data-root DIR [--epochs 10] [--freeze conv1 bn1 layer1 layer2] [--seed 1]

`fine-tune` does what `arbalest train bench/fine_tuning/caltech-resnet18.txtpb` does, with the same schedule and
augmentation and one learner, and prints the test accuracy after every epoch. Needs the Python packages torch,
safetensors, numpy and Pillow. docs/weights.md has the recipe.
"""

import argparse
import math
import pathlib
import random

import numpy
import torch
from PIL import Image
from safetensors.torch import load_file, save_file
from torch import nn
from torch.nn import functional

MEAN = (0.4914, 0.4822, 0.4465)  # CIFAR-10's; the job of Arbalest uses the same for Caltech-101
STDDEV = (0.2470, 0.2435, 0.2616)


class Block(nn.Module):
    """A residual block with torchvision's names."""

    def __init__(self, inputs, width, stride):
        super().__init__()
        self.conv1 = nn.Conv2d(inputs, width, 3, stride, 1, bias=False)
        self.bn1 = nn.BatchNorm2d(width)
        self.conv2 = nn.Conv2d(width, width, 3, 1, 1, bias=False)
        self.bn2 = nn.BatchNorm2d(width)
        self.downsample = None
        if stride > 1 or inputs != width:
            self.downsample = nn.Sequential(nn.Conv2d(inputs, width, 1, stride, bias=False), nn.BatchNorm2d(width))

    def forward(self, x):
        shortcut = x if self.downsample is None else self.downsample(x)
        x = functional.relu(self.bn1(self.conv1(x)))
        return functional.relu(self.bn2(self.conv2(x)) + shortcut)


class Resnet18(nn.Module):
    """torchvision's resnet18: its layers, names and initial values."""

    def __init__(self, classes):
        super().__init__()
        self.conv1 = nn.Conv2d(3, 64, 7, 2, 3, bias=False)
        self.bn1 = nn.BatchNorm2d(64)
        self.maxpool = nn.MaxPool2d(3, 2, 1)
        inputs = 64
        for stage in range(4):
            width = 64 << stage
            blocks = [Block(inputs, width, 2 if stage > 0 else 1), Block(width, width, 1)]
            setattr(self, f"layer{stage + 1}", nn.Sequential(*blocks))
            inputs = width
        self.fc = nn.Linear(inputs, classes)
        for module in self.modules():
            if isinstance(module, nn.Conv2d):
                nn.init.kaiming_normal_(module.weight, mode="fan_out", nonlinearity="relu")

    def forward(self, x):
        x = self.maxpool(functional.relu(self.bn1(self.conv1(x))))
        for stage in (self.layer1, self.layer2, self.layer3, self.layer4):
            x = stage(x)
        return self.fc(x.mean((2, 3)))


def normalized(images):
    """uint8 [n, 3, h, w] to float."""
    mean = torch.tensor(MEAN).view(1, 3, 1, 1)
    stddev = torch.tensor(STDDEV).view(1, 3, 1, 1)
    return (images.float() / 255 - mean) / stddev


def read_cifar10(root, files):
    rows = numpy.concatenate([numpy.fromfile(root / "cifar-10" / name, numpy.uint8).reshape(-1, 3073) for name in files])
    return torch.from_numpy(rows[:, 1:].reshape(-1, 3, 32, 32).copy()), torch.from_numpy(rows[:, 0].astype(numpy.int64))


def cropped_and_flipped(images, padding):
    """Shifts every image by up to `padding` pixels, and flips half of them."""
    size = images.shape[-1]
    padded = functional.pad(images, (padding,) * 4)
    result = torch.empty_like(images)
    for i, image in enumerate(padded):
        top, left = random.randint(0, 2 * padding), random.randint(0, 2 * padding)
        part = image[:, top : top + size, left : left + size]
        result[i] = part.flip(2) if random.random() < 0.5 else part
    return result


def read_caltech(root, listing):
    """[(path, label)], with the labels of Arbalest: folders by name."""
    folder = root / "caltech-101-10c"
    classes = sorted(path.name for path in folder.iterdir() if path.is_dir())
    lines = (folder / listing).read_text(encoding="utf-8").split()
    return [(folder / line, classes.index(line.split("/")[0])) for line in lines]


def random_resized_crop(image, size, min_area=0.35, max_aspect=1.3333):
    """As the job's random_resized_crop: an area and an aspect ratio, up to ten tries, else the middle."""
    width, height = image.size
    for _ in range(10):
        area = random.uniform(min_area, 1.0) * width * height
        aspect = math.exp(random.uniform(-math.log(max_aspect), math.log(max_aspect)))
        w, h = round(math.sqrt(area * aspect)), round(math.sqrt(area / aspect))
        if 0 < w <= width and 0 < h <= height:
            left, top = random.randint(0, width - w), random.randint(0, height - h)
            return image.resize((size, size), Image.BILINEAR, (left, top, left + w, top + h))
    return resized_middle(image, size, size)


def resized_middle(image, resize, size):
    """The shorter side becomes `resize`; the middle is kept."""
    width, height = image.size
    scale = resize / min(width, height)
    image = image.resize((round(width * scale), round(height * scale)), Image.BILINEAR)
    left, top = (image.width - size) // 2, (image.height - size) // 2
    return image.crop((left, top, left + size, top + size))


def as_tensor(image):
    return torch.from_numpy(numpy.asarray(image.convert("RGB"), numpy.uint8).copy()).permute(2, 0, 1)


def one_cycle(progress, rising=0.3, start=0.04, final=4e-6):
    """The factor of the learning rate at this part of the training."""
    if progress < rising:
        return start + (1 - start) * (1 - math.cos(math.pi * progress / rising)) / 2
    return final + (1 - final) * (1 + math.cos(math.pi * (progress - rising) / (1 - rising))) / 2


def accuracy_of(model, batches):
    model.eval()
    correct = examples = 0
    with torch.no_grad():
        for images, labels in batches():
            correct += int((model(normalized(images)).argmax(1) == labels).sum())
            examples += len(labels)
    return correct / examples


def train(model, options, batches, test_batches, epochs, batches_per_epoch, frozen=()):
    """options: the parameter groups of SGD, each with its own largest rate. batches(epoch): the mini-batches."""
    optimizer = torch.optim.SGD(options, momentum=0.9, weight_decay=5e-4)
    largest = [group["lr"] for group in optimizer.param_groups]
    step = 0
    for epoch in range(1, epochs + 1):
        model.train()
        for name, module in model.named_modules():  # frozen statistics
            if isinstance(module, nn.BatchNorm2d) and is_within(name, frozen):
                module.eval()
        for images, labels in batches():
            for group, rate in zip(optimizer.param_groups, largest):
                group["lr"] = rate * one_cycle(step / (epochs * batches_per_epoch))
            optimizer.zero_grad()
            functional.cross_entropy(model(normalized(images)), labels).backward()
            optimizer.step()
            step += 1
        print(f"epoch {epoch}: test accuracy {accuracy_of(model, test_batches):.4f}", flush=True)


def is_within(name, layers):
    return any(name == layer or name.startswith(layer + ".") for layer in layers)


def shuffled_batches(count, size):
    order = torch.randperm(count)
    return [order[i : i + size] for i in range(0, count - size + 1, size)]  # without a partial one, as Arbalest


def pretrain(arguments):
    root = pathlib.Path(arguments.data_root)
    images, labels = read_cifar10(root, [f"data_batch_{i}.bin" for i in range(1, 6)])
    test_images, test_labels = read_cifar10(root, ["test_batch.bin"])
    size = 128

    def batches():
        for chosen in shuffled_batches(len(labels), size):
            yield cropped_and_flipped(images[chosen], 4), labels[chosen]

    def test_batches():
        for i in range(0, len(test_labels), 250):
            yield test_images[i : i + 250], test_labels[i : i + 250]

    model = Resnet18(10)
    groups = [{"params": list(model.parameters()), "lr": 0.1}]
    train(model, groups, batches, test_batches, arguments.epochs, len(labels) // size)
    save_file(model.state_dict(), arguments.file)


def fine_tune(arguments):
    root = pathlib.Path(arguments.data_root)
    examples, tests = read_caltech(root, "train.txt"), read_caltech(root, "test.txt")
    decoded = [(Image.open(path).convert("RGB"), label) for path, label in examples]
    test_images = torch.stack([as_tensor(resized_middle(Image.open(path).convert("RGB"), 72, 64)) for path, _ in tests])
    test_labels = torch.tensor([label for _, label in tests])
    size = 16

    def batches():
        for chosen in shuffled_batches(len(decoded), size):
            parts = [as_tensor(random_resized_crop(decoded[i][0], 64)) for i in chosen]
            parts = [part.flip(2) if random.random() < 0.5 else part for part in parts]
            yield torch.stack(parts), torch.tensor([decoded[i][1] for i in chosen])

    model = Resnet18(10)
    if not arguments.from_scratch:
        weights = {name: value for name, value in load_file(arguments.file).items() if not name.startswith("fc.")}
        missing, unexpected = model.load_state_dict(weights, strict=False)
        assert sorted(missing) == ["fc.bias", "fc.weight"] and not unexpected, (missing, unexpected)
    for name, parameter in model.named_parameters():
        parameter.requires_grad = not is_within(name, arguments.freeze)
    head = [p for name, p in model.named_parameters() if name.startswith("fc.")]
    others = [p for name, p in model.named_parameters() if not name.startswith("fc.") and p.requires_grad]
    groups = [{"params": others, "lr": 0.005}, {"params": head, "lr": 0.05}]
    train(
        model,
        groups,
        batches,
        lambda: [(test_images, test_labels)],
        arguments.epochs,
        len(decoded) // size,
        arguments.freeze,
    )


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    commands = parser.add_subparsers(required=True)
    for name, action in (("pretrain", pretrain), ("fine-tune", fine_tune)):
        command = commands.add_parser(name)
        command.set_defaults(action=action)
        command.add_argument("file")
        command.add_argument("--data-root", required=True)
        command.add_argument("--epochs", type=int, default=10)
        command.add_argument("--seed", type=int, default=1)
        command.add_argument("--threads", type=int, default=2)
        if action is fine_tune:
            command.add_argument("--freeze", nargs="*", default=[], help="layers to freeze")
            command.add_argument("--from-scratch", action="store_true", help="does not read the file: for comparison")
    arguments = parser.parse_args()
    torch.set_num_threads(arguments.threads)
    torch.manual_seed(arguments.seed)
    random.seed(arguments.seed)
    arguments.action(arguments)


if __name__ == "__main__":
    main()
