#!/usr/bin/env python3
"""Makes the goldens of the zoo: PyTorch's results in float64 for one mini-batch in training mode.

    make_goldens.py [NAME]...       all, or only names that begin with a NAME; needs torch and torchvision

Weights, images and labels come from a counter-based formula that golden_model.cc repeats exactly. So a golden has only
results: the loss, and for every parameter the norm of the gradient and some of its elements. Parameters have
Arbalest's names, which follow torchvision. The goldens in the tree are from PyTorch 2.15.0 and torchvision 0.29.2.
"""
import json
import math
import pathlib
import sys

import numpy
import torch
import torchvision.models
from torch import nn
from torch.nn import functional

ENTRIES = 64  # stored elements of a gradient
MANY_PARAMETERS = 100  # a model with as many parameters or more stores one digit less per element
MOST_FLOAT_ERROR = 1e-4  # maximum relative error of float32 for a gradient that does not vanish


# --- Computations that golden_model.cc repeats ---


def random_words(name, count):
    """splitmix64 of (FNV-1a of the name) + index."""
    seed = 0xCBF29CE484222325
    for byte in name.encode():
        seed = (seed ^ byte) * 0x100000001B3 % 2**64
    with numpy.errstate(over="ignore"):
        x = numpy.uint64(seed) + numpy.arange(1, count + 1, dtype=numpy.uint64) * numpy.uint64(0x9E3779B97F4A7C15)
        x = (x ^ (x >> numpy.uint64(30))) * numpy.uint64(0xBF58476D1CE4E5B9)
        x = (x ^ (x >> numpy.uint64(27))) * numpy.uint64(0x94D049BB133111EB)
        return x ^ (x >> numpy.uint64(31))


def uniform(name, count):
    """Odd multiples of 2^-24 in (-1, 1), which are exact in float32."""
    odd = 2 * (random_words(name, count) >> numpy.uint64(40)).astype(numpy.int64) - 2**24 + 1
    return odd.astype(numpy.float32) * numpy.float32(2.0**-24)


def initial_value(name, shape, shift):
    """`shift`: initial shift for parameters of batch normalization, None for other parameters."""
    values = uniform(name, math.prod(shape))
    if len(shape) > 1:  # He's variance, which keeps the scale of features through ReLU
        values = values * numpy.float32(math.sqrt(6.0 / math.prod(shape[1:])))
    elif shift is not None and name.endswith("weight"):
        values = numpy.float32(1.0) + numpy.float32(0.25) * values
    elif shift is not None:  # far from 0, so that rounding does not change signs at the ReLUs
        values = numpy.float32(shift) + numpy.float32(0.1) * values
    else:
        values = numpy.float32(0.1) * values
    return torch.from_numpy(values.reshape(shape)).double()


def mini_batch(salt, image, classes, batch, period=None):
    """`period`: the pixels repeat with this period in both directions."""
    if isinstance(classes, list):  # the numbers of ids per column; the labels are numbers to predict
        ids = random_words(f"image {salt}", batch * len(classes)).reshape(batch, -1) % numpy.array(classes, numpy.uint64)
        return torch.from_numpy(ids.astype(numpy.int64)), torch.from_numpy(uniform(f"label {salt}", batch)).double()
    shape = [batch] + ([image[0], period, period] if period else image)
    pixels = uniform(f"image {salt}", math.prod(shape)) * numpy.float32(math.sqrt(3.0))
    pixels = pixels.reshape(shape)
    if period:
        pixels = numpy.tile(pixels, [1, 1] + [-(-side // period) for side in image[1:]])
        pixels = numpy.ascontiguousarray(pixels[:, :, :image[1], :image[2]])
    labels = random_words(f"label {salt}", batch) % numpy.uint64(classes)
    return torch.from_numpy(pixels).double(), torch.from_numpy(labels.astype(numpy.int64))


def entries_of(name, count):
    return (random_words(f"entries {name}", min(count, ENTRIES)) % numpy.uint64(count)).astype(numpy.int64)


# --- Models that torchvision does not have ---


class Sequence(nn.Module):
    """Modules in sequence, with our names."""

    def __init__(self, **modules):
        super().__init__()
        for name, module in modules.items():
            self.add_module(name, module)

    def forward(self, x):
        for module in self.children():
            x = module(x)
        return x


def logistic_regression(image, classes):
    return Sequence(flatten=nn.Flatten(), logits=nn.Linear(math.prod(image), classes))


def mlp(image, classes, hidden):
    modules = {"flatten": nn.Flatten()}
    features = math.prod(image)
    for i, width in enumerate(hidden, 1):
        modules[f"dense{i}"] = nn.Linear(features, width)
        modules[f"relu{i}"] = nn.ReLU()
        features = width
    return Sequence(**modules, logits=nn.Linear(features, classes))


class MatrixFactorization(nn.Module):
    def __init__(self, sizes, width):
        super().__init__()
        self.user, self.item = nn.Embedding(sizes[0], width), nn.Embedding(sizes[1], width)
        self.user_bias, self.item_bias = nn.Embedding(sizes[0], 1), nn.Embedding(sizes[1], 1)
        self.interaction = nn.Module()
        self.interaction.bias = nn.Parameter(torch.zeros(1))

    def forward(self, ids):
        user, item = ids.unbind(1)
        biases = self.user_bias(user) + self.item_bias(item) + self.interaction.bias
        return (self.user(user) * self.item(item)).sum(1) + biases[:, 0]


def lenet(image, classes, batch_norm=False):
    def normalized(number, channels):
        return {f"bn{number}": nn.BatchNorm2d(channels), f"relu{number}": nn.ReLU()} if batch_norm else {}

    features = 50 * math.prod(((side - 4) // 2 - 4) // 2 for side in image[1:])
    return Sequence(
        conv1=nn.Conv2d(image[0], 20, 5, bias=not batch_norm),
        **normalized(1, 20),
        pool1=nn.MaxPool2d(2),
        conv2=nn.Conv2d(20, 50, 5, bias=not batch_norm),
        **normalized(2, 50),
        pool2=nn.MaxPool2d(2),
        flatten=nn.Flatten(),
        dense1=nn.Linear(features, 500, bias=not batch_norm),
        **({"bn3": nn.BatchNorm1d(500)} if batch_norm else {}),
        relu=nn.ReLU(),
        logits=nn.Linear(500, classes),
    )


def cifar_quick(image, classes):
    side = image[1]
    for _ in range(3):
        side = -((3 - side) // 2) + 1  # rounded up
    return Sequence(
        conv1=nn.Conv2d(image[0], 32, 5, padding=2),
        pool1=nn.MaxPool2d(3, 2, ceil_mode=True),
        relu1=nn.ReLU(),
        conv2=nn.Conv2d(32, 32, 5, padding=2),
        relu2=nn.ReLU(),
        pool2=nn.AvgPool2d(3, 2, ceil_mode=True),
        conv3=nn.Conv2d(32, 64, 5, padding=2),
        relu3=nn.ReLU(),
        pool3=nn.AvgPool2d(3, 2, ceil_mode=True),
        flatten=nn.Flatten(),
        ip1=nn.Linear(64 * side * side, 64),
        ip2=nn.Linear(64, classes),
    )


class Features(nn.Module):
    """Features of torchvision's AlexNet and VGG, without their adaptive pooling, which has no effect for 224x224
    images."""

    def __init__(self, features, classifier):
        super().__init__()
        self.features = features
        self.classifier = classifier

    def forward(self, x):
        return self.classifier(torch.flatten(self.features(x), 1))


def alexnet(image, classes):
    features = torchvision.models.alexnet().features
    inputs = features(torch.zeros([2] + image)).shape[1:].numel()
    dense = Sequence(**{"1": nn.Linear(inputs, 4096), "2": nn.ReLU(), "4": nn.Linear(4096, 4096), "5": nn.ReLU(),
                        "6": nn.Linear(4096, classes)})
    return Features(features, dense)


def alexnet_grouped(image, classes):
    features = nn.Sequential()
    for name, module in {
        "conv1": nn.Conv2d(image[0], 96, 11, 4, 2), "relu1": nn.ReLU(), "norm1": nn.LocalResponseNorm(5),
        "pool1": nn.MaxPool2d(3, 2),
        "conv2": nn.Conv2d(96, 256, 5, 1, 2, groups=2), "relu2": nn.ReLU(), "norm2": nn.LocalResponseNorm(5),
        "pool2": nn.MaxPool2d(3, 2),
        "conv3": nn.Conv2d(256, 384, 3, 1, 1), "relu3": nn.ReLU(),
        "conv4": nn.Conv2d(384, 384, 3, 1, 1, groups=2), "relu4": nn.ReLU(),
        "conv5": nn.Conv2d(384, 256, 3, 1, 1, groups=2), "relu5": nn.ReLU(), "pool5": nn.MaxPool2d(3, 2),
    }.items():
        features.add_module(name, module)
    inputs = features(torch.zeros([2] + image)).shape[1:].numel()
    return Sequence(**dict(features.named_children()), flatten=nn.Flatten(), fc6=nn.Linear(inputs, 4096),
                    relu6=nn.ReLU(), fc7=nn.Linear(4096, 4096), relu7=nn.ReLU(), fc8=nn.Linear(4096, classes))


def vgg(image, classes, depth, batch_norm=False, head="CIFAR"):
    features = getattr(torchvision.models, f"vgg{depth}" + ("_bn" if batch_norm else ""))().features
    inputs = features(torch.zeros([2] + image)).shape[1:].numel()
    if head == "CIFAR":
        dense = {"0": nn.Linear(inputs, 512), "1": nn.ReLU(), "3": nn.Linear(512, classes)}
    else:
        dense = {"0": nn.Linear(inputs, 4096), "1": nn.ReLU(), "3": nn.Linear(4096, 4096), "4": nn.ReLU(),
                 "6": nn.Linear(4096, classes)}
    return Features(features, Sequence(**dense))


class CifarBlock(nn.Module):
    def __init__(self, inputs, channels, stride):
        super().__init__()
        self.conv1 = nn.Conv2d(inputs, channels, 3, stride, 1, bias=False)
        self.bn1 = nn.BatchNorm2d(channels)
        self.conv2 = nn.Conv2d(channels, channels, 3, 1, 1, bias=False)
        self.bn2 = nn.BatchNorm2d(channels)
        self.stride = stride
        self.added = channels - inputs

    def forward(self, x):
        y = functional.relu(self.bn1(self.conv1(x)))
        y = self.bn2(self.conv2(y))
        if self.stride > 1:  # shortcut option A
            x = x[:, :, :: self.stride, :: self.stride]
            x = functional.pad(x, (0, 0, 0, 0, self.added // 2, self.added - self.added // 2))
        return functional.relu(x + y)


class ResnetCifar(nn.Module):
    def __init__(self, image, classes, depth):
        super().__init__()
        self.conv1 = nn.Conv2d(image[0], 16, 3, 1, 1, bias=False)
        self.bn1 = nn.BatchNorm2d(16)
        channels = 16
        for stage in (1, 2, 3):
            blocks = []
            for i in range((depth - 2) // 6):
                stride = 2 if stage > 1 and i == 0 else 1
                blocks.append(CifarBlock(channels, 8 << stage, stride))
                channels = 8 << stage
            self.add_module(f"layer{stage}", nn.Sequential(*blocks))
        self.fc = nn.Linear(64, classes)

    def forward(self, x):
        x = functional.relu(self.bn1(self.conv1(x)))
        x = self.layer3(self.layer2(self.layer1(x)))
        return self.fc(x.mean((2, 3)))


def resnet(image, classes, depth, version="V1_5"):
    if version == "V2":
        return ResnetV2(image, classes, depth)
    model = getattr(torchvision.models, f"resnet{depth}")(num_classes=classes)
    if version == "V1" and depth >= 50:
        for module in model.modules():
            if isinstance(module, torchvision.models.resnet.Bottleneck):
                module.conv1.stride, module.conv2.stride = module.conv2.stride, module.conv1.stride
    return model


class PreActivationBlock(nn.Module):
    def __init__(self, inputs, width, stride, bottleneck):
        super().__init__()
        outputs = 4 * width if bottleneck else width
        kernels = [1, 3, 1] if bottleneck else [3, 3]
        strides = [1, stride, 1] if bottleneck else [stride, 1]
        channels = [inputs] + [width] * (len(kernels) - 1) + [outputs]
        self.convolutions = len(kernels)
        for i, kernel in enumerate(kernels):
            self.add_module(f"bn{i + 1}", nn.BatchNorm2d(channels[i]))
            self.add_module(f"conv{i + 1}", nn.Conv2d(channels[i], channels[i + 1], kernel, strides[i], kernel // 2, bias=False))
        self.downsample = None
        if stride > 1 or inputs != outputs:
            self.downsample = nn.Sequential(nn.Conv2d(inputs, outputs, 1, stride, bias=False))

    def forward(self, x):
        shortcut = x
        for i in range(1, self.convolutions + 1):
            x = functional.relu(getattr(self, f"bn{i}")(x))
            if i == 1 and self.downsample is not None:
                shortcut = self.downsample(x)
            x = getattr(self, f"conv{i}")(x)
        return x + shortcut


class ResnetV2(nn.Module):
    def __init__(self, image, classes, depth):
        super().__init__()
        blocks = {18: [2, 2, 2, 2], 34: [3, 4, 6, 3], 50: [3, 4, 6, 3], 101: [3, 4, 23, 3], 152: [3, 8, 36, 3]}[depth]
        bottleneck = depth >= 50
        self.conv1 = nn.Conv2d(image[0], 64, 7, 2, 3, bias=False)
        channels = 64
        for stage, count in enumerate(blocks):
            layers = []
            for i in range(count):
                stride = 2 if stage > 0 and i == 0 else 1
                layers.append(PreActivationBlock(channels, 64 << stage, stride, bottleneck))
                channels = (64 << stage) * (4 if bottleneck else 1)
            self.add_module(f"layer{stage + 1}", nn.Sequential(*layers))
        self.bn = nn.BatchNorm2d(channels)
        self.fc = nn.Linear(channels, classes)

    def forward(self, x):
        x = functional.max_pool2d(self.conv1(x), 3, 2, 1)
        x = self.layer4(self.layer3(self.layer2(self.layer1(x))))
        return self.fc(functional.relu(self.bn(x)).mean((2, 3)))


def inception_v3(image, classes, auxiliary_head=True):
    return torchvision.models.inception_v3(
        num_classes=classes, aux_logits=auxiliary_head, transform_input=False, init_weights=False, dropout=0.0)


class MobilenetV1(nn.Module):
    def __init__(self, image, classes):
        super().__init__()

        def convolution(inputs, outputs, kernel, stride, groups=1):
            return [nn.Conv2d(inputs, outputs, kernel, stride, kernel // 2, groups=groups, bias=False),
                    nn.BatchNorm2d(outputs), nn.ReLU()]

        blocks = [nn.Sequential(*convolution(image[0], 32, 3, 2))]
        inputs = 32
        for outputs, stride in [(64, 1), (128, 2), (128, 1), (256, 2), (256, 1), (512, 2)] + [(512, 1)] * 5 + [
                (1024, 2), (1024, 1)]:
            blocks.append(nn.Sequential(*convolution(inputs, inputs, 3, stride, inputs),
                                        *convolution(inputs, outputs, 1, 1)))
            inputs = outputs
        self.features = nn.Sequential(*blocks)
        self.fc = nn.Linear(1024, classes)

    def forward(self, x):
        return self.fc(self.features(x).mean((2, 3)))


def mobilenet_v2(image, classes):
    return torchvision.models.mobilenet_v2(num_classes=classes, dropout=0.0)


# --- The goldens ---

GRAY = [1, 28, 28]


def colored(side):
    return [3, side, side]


# Name -> model as in a job file, PyTorch model, image, classes, examples in the mini-batch.
CASES = {
    "logistic_regression": ("logistic_regression {}", logistic_regression, GRAY, 10, 4),
    "mlp": ("mlp { hidden: [40, 30] }", lambda i, c: mlp(i, c, [40, 30]), GRAY, 10, 4),
    "lenet": ("lenet {}", lenet, GRAY, 10, 4),
    "lenet_bn": ("lenet { batch_norm: true }", lambda i, c: lenet(i, c, True), GRAY, 10, 8),
    "cifar_quick": ("cifar_quick {}", cifar_quick, colored(32), 10, 4),
    "alexnet": ("alexnet { dropout: 0 }", alexnet, colored(95), 10, 2),
    "alexnet_grouped": ("alexnet { variant: GROUPED dropout: 0 }", alexnet_grouped, colored(95), 10, 2),
    "vgg11": ("vgg { depth: 11 head: CIFAR dropout: 0 }", lambda i, c: vgg(i, c, 11), colored(32), 10, 2),
    "vgg16_bn": ("vgg { depth: 16 batch_norm: true head: CIFAR dropout: 0 }", lambda i, c: vgg(i, c, 16, True), colored(32), 100, 8),
    "vgg16_imagenet": ("vgg { depth: 16 head: IMAGENET dropout: 0 }", lambda i, c: vgg(i, c, 16, head="IMAGENET"),
                       colored(32), 10, 2),
    "vgg19_imagenet": ("vgg { depth: 19 head: IMAGENET dropout: 0 }", lambda i, c: vgg(i, c, 19, head="IMAGENET"),
                       colored(32), 10, 2),
    "matrix_factorization": ("matrix_factorization { width: 12 }", lambda _, sizes: MatrixFactorization(sizes, 12), [2],
                             [40, 30], 64),
    "mobilenet_v1": ("mobilenet_v1 {}", MobilenetV1, colored(64), 10, 8),
    "mobilenet_v2": ("mobilenet_v2 { dropout: 0 }", mobilenet_v2, colored(64), 10, 8),
    "squeezenet": ("squeezenet { dropout: 0 }",
                   lambda _, c: torchvision.models.squeezenet1_1(num_classes=c, dropout=0.0), colored(64), 10, 8),
    "inception_v3": ("inception_v3 { dropout: 0 }", inception_v3, colored(299), 10, 4),
    "inception_v3_plain": ("inception_v3 { auxiliary_head: false dropout: 0 }",
                           lambda i, c: inception_v3(i, c, False), colored(107), 10, 4),
}
for depth in (20, 32, 44, 56, 110):  # deep models get small images, because fewer ReLUs give fewer near ties
    CASES[f"resnet_cifar{depth}"] = (f"resnet_cifar {{ depth: {depth} }}",
                                     lambda i, c, d=depth: ResnetCifar(i, c, d), colored(16 if depth == 20 else 8), 10, 8)
for depth, version in [(18, "V1_5"), (34, "V1_5"), (50, "V1_5"), (101, "V1_5"), (152, "V1_5"), (50, "V1"), (18, "V2"),
                       (50, "V2")]:
    suffix = {"V1": "_v1", "V1_5": "", "V2": "_v2"}[version]
    CASES[f"resnet{depth}{suffix}"] = (f"resnet {{ depth: {depth} version: {version} }}",
                                       lambda i, c, d=depth, v=version: resnet(i, c, d, v),
                                       colored(64 if depth == 18 else 32), 10, 8)


# First salt for models whose earlier mini-batches have ties in Arbalest.
FIRST_SALT = {"lenet_bn": 1, "inception_v3": 1}
# Minimum distance, in standard deviations, of a ReLU's input from 0 (for ReLU6 also from 6) and of a maximum from the next value. It is set for
# models for which PyTorch's float32 agrees with float64, but the kernels of some processors do not.
LEAST_MARGIN = {"vgg16_bn": 5e-6}
SHIFT = 2.5  # initial shift of batch normalization
# The auxiliary head needs 299x299 images. On these the first layers have millions of maxima, so every mini-batch has
# ties. With periodic pixels only few maxima are different. 32 is the product of the strides.
PERIOD = {"inception_v3": 32}
FLOAT_ERROR = {"inception_v3": 5e-4}  # the later layers still have half a million maxima
# A maximum in a later layer may select another element on some devices. These are the beginnings of the names of the
# affected tensors, and the allowed error.
LOOSE = {"inception_v3": {"tolerance": 1e-2, "tensors": ["Conv2d_", "Mixed_5", "Mixed_6"]}}


def run(model, images, labels):
    model.zero_grad()
    output = model(images)
    if hasattr(output, "aux_logits"):  # the main head comes first
        loss = functional.cross_entropy(output[0], labels) + 0.4 * functional.cross_entropy(output[1], labels)
    elif labels.is_floating_point():
        loss = functional.mse_loss(output, labels)
    else:
        loss = functional.cross_entropy(output, labels)
    loss.backward()
    return loss.item(), {name: parameter.grad.detach().double().numpy().ravel().copy()
                         for name, parameter in model.named_parameters()}


class Margins:
    """Finds the smallest margins in a forward pass, for ReLUs and maxima that are modules."""

    def __init__(self, model):
        self.least = (math.inf, "")
        self.hooks = []
        for name, module in model.named_modules():
            margins = {nn.ReLU: self.of_relu, nn.ReLU6: self.of_relu6,
                       nn.MaxPool2d: self.of_maximum}.get(type(module))
            if margins is None:
                continue
            if margins in (self.of_relu, self.of_relu6):
                module.inplace = False  # the hook reads its input afterwards
            self.hooks.append(module.register_forward_hook(lambda m, x, _, n=name, f=margins: self.add(n, f(m, x[0]), x[0])))

    def add(self, name, margins, features):
        self.least = min(self.least, (float(margins.min() / features.detach().std()), name))

    def remove(self):
        for hook in self.hooks:
            hook.remove()

    @staticmethod
    def of_relu(_, features):
        return features.detach().abs()

    @staticmethod
    def of_relu6(_, features):
        return torch.minimum(features.detach().abs(), (features.detach() - 6).abs())

    @staticmethod
    def of_maximum(module, features):
        planes = features.detach().flatten(0, 1).unsqueeze(1)
        windows = functional.unfold(planes, module.kernel_size, stride=module.stride, padding=module.padding)
        first, second = windows.topk(2, dim=1).values.unbind(1)
        return (first - second)[first > 0]  # if all values are 0, the ReLU before has no gradient


def compute(name, salt):
    text, builder, image, classes, batch = CASES[name]
    torch.manual_seed(0)
    model = builder(image, classes).train().double()
    with torch.no_grad():
        shapes = {n: list(p.shape) for n, p in model.named_parameters()}
        for parameter_name, parameter in model.named_parameters():
            weight = parameter_name.rsplit(".", 1)[0] + ".weight"
            shift = SHIFT if len(shapes.get(weight, [])) == 1 else None
            parameter.copy_(initial_value(parameter_name, shapes[parameter_name], shift))
    images, labels = mini_batch(salt, image, classes, batch, PERIOD.get(name))
    margins = Margins(model)
    loss, gradient = run(model, images, labels)
    margins.remove()
    if images.is_floating_point():
        images = images.float()
    if labels.is_floating_point():
        labels = labels.float()
    in_float = run(model.float(), images, labels)[1]
    norms = {n: numpy.linalg.norm(values) for n, values in gradient.items()}
    least = 1e-4 * math.hypot(*norms.values())
    worst = max((numpy.linalg.norm(in_float[n] - gradient[n]) / norms[n], n) for n in gradient if norms[n] > least)
    return loss, gradient, norms, worst, margins.least


def make(name):
    """Uses the first mini-batch in which float32 resolves every near tie of a ReLU or maximum like float64."""
    salt = FIRST_SALT.get(name, 0)
    loss, gradient, norms, worst, margin = compute(name, salt)
    while worst[0] > FLOAT_ERROR.get(name, MOST_FLOAT_ERROR) or margin[0] < LEAST_MARGIN.get(name, 0.0):
        print(f"{name}: mini-batch {salt}: PyTorch's float32 is off by {worst[0]:.1e} in {worst[1]}, the least margin is "
              f"{margin[0]:.1e} in {margin[1]}", flush=True)
        salt += 1
        loss, gradient, norms, worst, margin = compute(name, salt)
    digits = 6 if len(gradient) < MANY_PARAMETERS else 5
    tensors = {}
    for parameter_name, values in gradient.items():
        entries = values[entries_of(parameter_name, values.size)]
        tensors[parameter_name] = {"norm": float(f"{norms[parameter_name]:.7g}"),
                                   "entries": [float(f"{v:.{digits}g}") for v in entries]}
    text, _, image, classes, batch = CASES[name]
    head = {"model": text, "image": image, **({"ids": classes} if isinstance(classes, list) else {"classes": classes}),
            "batch": batch, "salt": salt,
            "shift": SHIFT, "loss": loss,
            "parameters": sum(v.size for v in gradient.values())}
    if name in LOOSE:
        head["loose"] = LOOSE[name]
    if name in PERIOD:
        head["period"] = PERIOD[name]
    lines = ",\n".join(f'"{n}":{json.dumps(tensor, separators=(",", ":"))}' for n, tensor in tensors.items())
    golden = json.dumps(head)[:-1] + ', "tensors": {\n' + lines + "\n}}\n"
    pathlib.Path(__file__).with_name(name + ".json").write_text(golden)
    print(f"{name}: loss {loss:.6f}, {head['parameters']:,} parameters, mini-batch {salt}, {len(golden):,} bytes; "
          f"PyTorch's float32 is off by {worst[0]:.1e} in {worst[1]}, the least margin is {margin[0]:.1e} in {margin[1]}",
          flush=True)


def main():
    for name in CASES:
        if len(sys.argv) == 1 or any(name.startswith(wanted) for wanted in sys.argv[1:]):
            make(name)


if __name__ == "__main__":
    main()
