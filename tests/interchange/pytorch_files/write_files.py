"""Writes the files of this folder: small networks as PyTorch's exporters write them, and expected.json with what PyTorch
computes.

  python write_files.py              # in an environment with torch 2.15, onnx and onnxscript
  python write_files.py ResNet Tied  # only these networks

Places in the source code of the machine, which the newer exporter records, are taken out; all else is as exported.
"""

import contextlib
import io
import json
import logging
import pathlib
import sys
import warnings

import onnx
import torch
from torch import nn

FOLDER = pathlib.Path(__file__).resolve().parent
MODE = torch.onnx.TrainingMode
BATCH = 2

# The arguments of torch.onnx.export, and the mode of the network.
RECIPE = {"training": MODE.PRESERVE, "do_constant_folding": False, "optimize": False}
WAYS = {
    "default": ("eval", {}),
    "default_train": ("train", {}),
    "unoptimized_train": ("train", {"optimize": False}),
    "recipe": ("eval", RECIPE),
    "legacy": ("eval", {"dynamo": False}),
    "legacy_train": ("train", {"dynamo": False, "do_constant_folding": False, "training": MODE.TRAINING}),
    "legacy_recipe": ("eval", {"dynamo": False, **RECIPE}),
}


class Block(nn.Module):
    def __init__(self, inputs, outputs, stride):
        super().__init__()
        self.conv1 = nn.Conv2d(inputs, outputs, 3, stride, 1, bias=False)
        self.bn1 = nn.BatchNorm2d(outputs)
        self.conv2 = nn.Conv2d(outputs, outputs, 3, 1, 1, bias=False)
        self.bn2 = nn.BatchNorm2d(outputs)
        is_same = stride == 1 and inputs == outputs
        self.downsample = nn.Identity() if is_same else nn.Sequential(
            nn.Conv2d(inputs, outputs, 1, stride, bias=False), nn.BatchNorm2d(outputs))

    def forward(self, x):
        y = torch.relu(self.bn1(self.conv1(x)))
        return torch.relu(self.bn2(self.conv2(y)) + self.downsample(x))


class ResNet(nn.Module):
    """Six batch norms, and dropout before the last layer."""
    example = (3, 8, 8)

    def __init__(self):
        super().__init__()
        self.conv1 = nn.Conv2d(3, 4, 3, 1, 1, bias=False)
        self.bn1 = nn.BatchNorm2d(4)
        self.layer1 = Block(4, 4, 1)
        self.layer2 = Block(4, 6, 2)
        self.dropout = nn.Dropout(0.25)
        self.fc = nn.Linear(6, 3)

    def forward(self, x):
        x = self.layer2(self.layer1(torch.relu(self.bn1(self.conv1(x)))))
        return self.fc(self.dropout(x.mean((2, 3))))


class TrainedResNet(ResNet):
    """The same with other statistics, scales and biases than those of a new network."""

    def __init__(self):
        super().__init__()
        for module in self.modules():
            if isinstance(module, nn.BatchNorm2d):
                for tensor in (module.weight.data, module.running_var):
                    tensor.uniform_(0.5, 1.5)
                for tensor in (module.bias.data, module.running_mean):
                    tensor.normal_(0, 0.3)


class MobileNet(nn.Module):
    """An inverted residual."""
    example = (3, 8, 8)

    def __init__(self):
        super().__init__()
        self.stem = nn.Sequential(nn.Conv2d(3, 4, 3, 2, 1, bias=False), nn.BatchNorm2d(4), nn.ReLU6())
        self.block = nn.Sequential(
            nn.Conv2d(4, 8, 1, bias=False), nn.BatchNorm2d(8), nn.ReLU6(),
            nn.Conv2d(8, 8, 3, 1, 1, groups=8, bias=False), nn.BatchNorm2d(8), nn.ReLU6(),
            nn.Conv2d(8, 4, 1, bias=False), nn.BatchNorm2d(4))
        self.classifier = nn.Sequential(nn.Dropout(0.2), nn.Linear(4, 3))

    def forward(self, x):
        x = self.stem(x)
        x = nn.functional.adaptive_avg_pool2d(x + self.block(x), 1)
        return self.classifier(torch.flatten(x, 1))


class Fire(nn.Module):
    def __init__(self, inputs, squeezed, expanded):
        super().__init__()
        self.squeeze = nn.Conv2d(inputs, squeezed, 1)
        self.expand1x1 = nn.Conv2d(squeezed, expanded, 1)
        self.expand3x3 = nn.Conv2d(squeezed, expanded, 3, padding=1)

    def forward(self, x):
        x = torch.relu(self.squeeze(x))
        return torch.cat([torch.relu(self.expand1x1(x)), torch.relu(self.expand3x3(x))], 1)


class SqueezeNet(nn.Module):
    """Eleven convolutions, without batch norm. New biases are 0, as in torchvision."""
    example = (3, 12, 12)

    def __init__(self):
        super().__init__()
        self.features = nn.Sequential(
            nn.Conv2d(3, 4, 3, stride=2), nn.ReLU(), Fire(4, 2, 2), Fire(4, 2, 2),
            nn.MaxPool2d(3, 2, ceil_mode=True), Fire(4, 2, 3))
        self.classifier = nn.Sequential(
            nn.Dropout(0.5), nn.Conv2d(6, 3, 1), nn.ReLU(), nn.AdaptiveAvgPool2d(1))
        for module in self.modules():
            if isinstance(module, nn.Conv2d):
                nn.init.uniform_(module.weight, -0.3, 0.5)  # not all outputs become 0
                nn.init.zeros_(module.bias)

    def forward(self, x):
        return torch.flatten(self.classifier(self.features(x)), 1)


class LeNet(nn.Module):
    """Flattens by the size of its input."""
    example = (1, 12, 12)

    def __init__(self):
        super().__init__()
        self.conv1 = nn.Conv2d(1, 3, 5)
        self.conv2 = nn.Conv2d(3, 4, 3)
        self.fc1 = nn.Linear(4, 6)
        self.fc2 = nn.Linear(6, 3)

    def forward(self, x):
        x = nn.functional.max_pool2d(torch.relu(self.conv1(x)), 2)
        x = nn.functional.max_pool2d(torch.relu(self.conv2(x)), 2)
        x = x.view(x.size(0), -1)
        return self.fc2(torch.relu(self.fc1(x)))


class Tied(nn.Module):
    """Two layers with the same weights, and two whose biases only happen to be equal."""
    example = (2, 2, 2)

    def __init__(self):
        super().__init__()
        self.first = nn.Linear(8, 8)
        self.second = nn.Linear(8, 8)
        self.second.weight = self.first.weight
        self.third = nn.Linear(8, 8)
        self.fourth = nn.Linear(8, 3)
        for layer in (self.second, self.third):
            nn.init.constant_(layer.bias, 0.25)

    def forward(self, x):
        x = torch.flatten(x, 1)
        for layer in (self.first, self.second, self.third):
            x = torch.relu(layer(x))
        return self.fourth(x)


class Dropouts(nn.Module):
    """Dropout in place, which the newer exporter spells out."""
    example = (2, 4, 4)

    def __init__(self):
        super().__init__()
        self.conv = nn.Conv2d(2, 4, 3, padding=1)
        self.first = nn.Dropout(0.125, inplace=True)
        self.fc1 = nn.Linear(64, 6)
        self.second = nn.Dropout(0.2, inplace=True)
        self.fc2 = nn.Linear(6, 3)

    def forward(self, x):
        x = torch.flatten(self.first(torch.relu(self.conv(x))), 1)
        return self.fc2(self.second(torch.relu(self.fc1(x))))


FILES = {
    ResNet: ["default", "default_train", "unoptimized_train", "recipe", "legacy", "legacy_train", "legacy_recipe"],
    TrainedResNet: ["default", "unoptimized_train", "legacy", "legacy_recipe"],
    MobileNet: ["default", "unoptimized_train", "legacy_recipe"],
    SqueezeNet: ["default", "unoptimized_train", "legacy", "legacy_recipe"],
    LeNet: ["default", "recipe", "legacy", "default_free", "recipe_free", "legacy_free"],  # free: any number of examples
    Tied: ["default", "legacy"],
    Dropouts: ["default", "default_train", "unoptimized_train", "unoptimized_train_free"],
}


def example_of(kind):
    """The numbers that the test computes again: (37 k mod 101) / 50 - 1."""
    shape = (BATCH, *kind.example)
    numbers = torch.arange(torch.Size(shape).numel())
    return ((37 * numbers % 101).to(torch.float32) / 50 - 1).reshape(shape)


def export(network, example, file, way):
    mode, options = WAYS[way.removesuffix("_free")]
    options = dict(options)
    if way.endswith("_free") and "dynamo" in options:
        options.update(input_names=["x"], dynamic_axes={"x": {0: "n"}})
    elif way.endswith("_free"):
        options.update(dynamic_shapes={"x": {0: torch.export.Dim("n")}})
    getattr(network, mode)()
    with warnings.catch_warnings(), contextlib.redirect_stdout(io.StringIO()):
        warnings.simplefilter("ignore")
        torch.onnx.export(network, (example,), str(file), external_data=False, **options)


def without_places(file):
    model = onnx.load(file)
    for node in model.graph.node:
        kept = [entry for entry in node.metadata_props if entry.key != "pkg.torch.onnx.stack_trace"]
        del node.metadata_props[:]
        node.metadata_props.extend(kept)
    onnx.save(model, file)


def state_of(network):
    """The shape and the elements of each tensor, by name."""
    return {name: (list(value.shape), value.flatten().tolist())
            for name, value in network.state_dict().items() if "num_batches" not in name}


def output_of(network, example):
    with torch.no_grad():
        return network.eval()(example).flatten().tolist()


def write(kind, way):
    torch.manual_seed(7)
    network, example = kind(), example_of(kind)
    before, state = output_of(network, example), state_of(network)
    name = f"{kind.__name__.lower()}_{way}.onnx"
    export(network, example, FOLDER / name, way)
    without_places(FOLDER / name)
    after = output_of(network, example)
    is_changed = state_of(network) != state
    if not is_changed and after != before:
        raise AssertionError(f"{name}: the export changed what the network computes")
    shapes = {name: shape for name, (shape, _) in state.items()}
    statistics = {name: values for name, (_, values) in state.items() if "running" in name}
    network = {"example": kind.example, "output": before, "shapes": shapes, "statistics": statistics}
    return name, {"network": kind.__name__, "is_changed": is_changed, "output_after": after if is_changed else None}, network


def text_of(expected):
    """JSON with a line for each network and file."""
    lines = [f' "torch": {json.dumps(expected["torch"])},', f' "batch": {BATCH},']
    for key, end in (("networks", ","), ("files", "")):
        entries = [f"  {json.dumps(name)}: {json.dumps(entry)}" for name, entry in expected[key].items()]
        lines += [f' "{key}": {{', ",\n".join(entries), f" }}{end}"]
    return "{\n" + "\n".join(lines) + "\n}\n"


def main():
    logging.disable(logging.CRITICAL)
    torch.set_num_threads(1)
    file = FOLDER / "expected.json"
    wanted = [kind for kind in FILES if kind.__name__ in sys.argv[1:]] or list(FILES)
    kept = json.loads(file.read_text(encoding="utf-8")) if len(wanted) < len(FILES) else {"networks": {}, "files": {}}
    networks, files = kept["networks"], kept["files"]
    for kind in wanted:
        for way in FILES[kind]:
            name, entry, network = write(kind, way)
            files[name] = entry
            networks[kind.__name__] = network
    expected = {"torch": torch.__version__.split("+", maxsplit=1)[0], "networks": networks, "files": files}
    file.write_text(text_of(expected), encoding="utf-8")


if __name__ == "__main__":
    main()
