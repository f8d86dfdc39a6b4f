"""Models that PyTorch exports compute here what they compute in PyTorch, and keep the names of their weights."""

import copy
import importlib.util
import pathlib
import sys
import tempfile
import unittest
import warnings

try:
    import numpy as np
    import torch
    from torch import nn
    from torch.nn import functional
except ImportError as missing:
    print(f"skipped: {missing}")
    sys.exit(4)

import probe

LIMIT = 1e-5  # relative norm
FEATURES = 24


class Block(nn.Module):
    """The residual block of ResNet-18."""

    def __init__(self, inputs, outputs, stride):
        super().__init__()
        self.conv1 = nn.Conv2d(inputs, outputs, 3, stride, 1, bias=False)
        self.bn1 = nn.BatchNorm2d(outputs)
        self.relu = nn.ReLU(inplace=True)
        self.conv2 = nn.Conv2d(outputs, outputs, 3, 1, 1, bias=False)
        self.bn2 = nn.BatchNorm2d(outputs)
        is_same = stride == 1 and inputs == outputs
        self.downsample = nn.Identity() if is_same else nn.Sequential(
            nn.Conv2d(inputs, outputs, 1, stride, bias=False), nn.BatchNorm2d(outputs))

    def forward(self, x):
        y = self.relu(self.bn1(self.conv1(x)))
        return self.relu(self.bn2(self.conv2(y)) + self.downsample(x))


class HardSwishByHand(nn.Module):
    """Hard swish as models write it that do not use PyTorch's."""

    def __init__(self, scales_gate):
        super().__init__()
        self.scales_gate = scales_gate

    def forward(self, x):
        gate = functional.relu6(x + 3)
        return x * (gate / 6) if self.scales_gate else x * gate / 6


class Network(nn.Module):
    def __init__(self):
        super().__init__()
        self.stem = nn.Sequential(nn.Conv2d(3, 16, 7, 2, 3, bias=False), nn.BatchNorm2d(16), nn.ReLU6(),
                                  nn.MaxPool2d(3, 2, 1))
        self.layer1 = nn.Sequential(Block(16, 16, 1), Block(16, FEATURES, 2))
        self.functions = nn.Sequential(nn.GELU(), nn.SiLU(), nn.LeakyReLU(0.2), nn.BatchNorm2d(FEATURES),
                                       nn.Hardswish(), HardSwishByHand(False), HardSwishByHand(True),
                                       nn.ZeroPad2d((0, 1, 0, 1)), nn.Conv2d(FEATURES, FEATURES, 2, groups=4))
        self.pool = nn.AdaptiveAvgPool2d(1)
        self.dropout = nn.Dropout(0.2)
        self.hidden = nn.Sequential(nn.Linear(FEATURES, 12), nn.Hardswish(), HardSwishByHand(False))
        self.fc = nn.Linear(12, 10)

    def forward(self, x):
        x = self.pool(self.functions(self.layer1(self.stem(x))))
        return self.fc(self.dropout(self.hidden(torch.flatten(x, 1))))


class Signals(nn.Module):
    """A network on lines [n, c, w]."""

    def __init__(self):
        super().__init__()
        self.features = nn.Sequential(
            nn.Conv1d(3, 12, 5, stride=2, padding=2, bias=False), nn.BatchNorm1d(12), nn.ReLU(), nn.MaxPool1d(3, 2, 1),
            nn.ConstantPad1d((2, 0), 0.0), nn.Conv1d(12, 12, 3, groups=12), nn.Hardswish(), nn.AvgPool1d(2),
            nn.Conv1d(12, 16, 3, dilation=2), nn.Sigmoid())
        self.fc = nn.Linear(16, 10)

    def forward(self, x):
        return self.fc(self.features(x).mean(2))


def random_network(kind):
    torch.manual_seed(3)
    network = kind()
    for module in network.modules():
        if isinstance(module, (nn.BatchNorm1d, nn.BatchNorm2d)):
            module.running_mean.normal_()
            module.running_var.uniform_(0.5, 1.5)
    return network


# The way of docs/onnx.md to keep batch norm.
RECIPE = {"training": torch.onnx.TrainingMode.PRESERVE, "do_constant_folding": False, "optimize": False}


def has_newer_exporter():
    return importlib.util.find_spec("onnxscript") is not None


def export(network, example, file, **options):
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        torch.onnx.export(network, (example,), str(file), input_names=["x"], output_names=["y"], **options)


def state_of(network):
    return {name: value.numpy() for name, value in copy.deepcopy(network).state_dict().items()
            if not name.endswith("num_batches_tracked")}


class TorchImport(unittest.TestCase):
    def check(self, network, example, changes_network=False, **options):
        """Compares with the network before the export, and makes sure that the export leaves it alone."""
        before, state = copy.deepcopy(network).eval(), state_of(network)
        with tempfile.TemporaryDirectory() as directory:
            file = pathlib.Path(directory) / "network.onnx"
            export(network, example, file, **options)
            is_same = all(np.array_equal(value, state[name]) for name, value in state_of(network).items())
            self.assertEqual(is_same, not changes_network)
            run = pathlib.Path(directory) / "run"
            self.warnings = probe.call(probe.PROGRAM, "import", file, "--output", run)
            expected = (network.eval() if changes_network else before)(example).detach().numpy()
            self.assertLess(probe.relative_norm(probe.output_of(run, example.numpy()), expected), LIMIT)
            return (run / "job.txtpb").read_text(encoding="utf-8"), probe.tensors_in(run / "model.safetensors")

    def setUp(self):
        self.network = random_network(Network)
        self.example = torch.randn(4, 3, 64, 48)

    def check_recipe(self, **options):
        state = state_of(self.network)
        job, tensors = self.check(self.network.eval(), self.example, **RECIPE, **options)
        self.assertEqual({name: value.shape for name, value in tensors.items()},
                         {name: value.shape for name, value in state.items()})
        for name, value in state.items():
            np.testing.assert_array_equal(tensors[name], value, name)
        self.assertNotIn("batch norm", self.warnings)
        self.assertNotIn("momentum", job)  # PyTorch's default is ours; ONNX has 0.9 for it
        return job

    def test_the_recipe_keeps_the_network_as_it_was(self):
        job = self.check_recipe(dynamo=False, dynamic_axes={"x": {0: "n"}})
        self.assertEqual(job.count("hard_swish"), 5)
        for kind in ("gelu", "silu", "relu6", "leaky_relu", "batch_norm", "global_average_pool", "extra_padding: 1"):
            self.assertIn(kind, job)

    @unittest.skipUnless(has_newer_exporter(), "onnxscript is missing")
    def test_the_recipe_keeps_the_network_with_the_newer_exporter(self):
        self.check_recipe(dynamo=True)

    @unittest.skipUnless(has_newer_exporter(), "onnxscript is missing")
    def test_the_newer_exporter_in_training_mode_keeps_dropout_too(self):
        job, tensors = self.check(self.network.train(), self.example, dynamo=True, optimize=False)
        self.assertEqual(set(tensors), set(state_of(self.network)))
        self.assertIn("dropout { ratio: 0.2 }", job)

    @unittest.skipUnless(has_newer_exporter(), "onnxscript is missing")
    def test_the_newer_exporter_says_that_it_has_folded_batch_norm(self):
        self.check(self.network.train(), self.example, dynamo=True)
        self.assertIn("has folded batch norm into 6 layers", self.warnings)  # the seventh follows no layer
        self.assertIn("optimize=False", self.warnings)

    def test_the_older_exporter_in_training_mode_changes_the_network(self):
        self.check(self.network.train(), self.example, changes_network=True, dynamo=False, do_constant_folding=False,
                   training=torch.onnx.TrainingMode.TRAINING, dynamic_axes={"x": {0: "n"}})
        self.assertIn("has moved its running statistics", self.warnings)

    def test_in_evaluation_mode_with_a_free_batch(self):
        self.check(self.network.eval(), self.example, dynamo=False, dynamic_axes={"x": {0: "n"}})

    def test_in_evaluation_mode_with_a_fixed_batch(self):
        self.check(self.network.eval(), self.example, dynamo=False)

    def test_lines_become_images_of_one_row(self):
        job, tensors = self.check(random_network(Signals).eval(), torch.randn(4, 3, 90), dynamo=False,
                                  dynamic_axes={"x": {0: "n"}})
        self.assertIn("height: 1", job)
        self.assertIn("extra_padding_width: -2", job)
        self.assertEqual(tensors["features.0.weight"].shape, (12, 3, 1, 5))

    def test_slopes_of_prelu(self):
        """One slope, PyTorch's default, and one for each channel and feature."""
        example = torch.randn(4, 3, 8, 8)
        for channels, features in ((1, 1), (4, 8)):
            network = nn.Sequential(nn.Conv2d(3, 4, 3, padding=1), nn.PReLU(channels), nn.Flatten(), nn.Linear(256, 8),
                                    nn.PReLU(features), nn.Linear(8, 5)).eval()
            with torch.no_grad():
                network[1].weight.uniform_()
                network[4].weight.uniform_()
            exporters = [{"dynamo": False}]
            if has_newer_exporter():
                exporters += [{"dynamo": True}, {"dynamo": True, "optimize": False}]
            for options in exporters:
                with self.subTest(channels=channels, **options):
                    job, _ = self.check(network, example, **options)
                    self.assertEqual(job.count("prelu {"), 2)
                    self.assertEqual("one slope for all channels" in self.warnings, channels == 1)

    @unittest.skipUnless(has_newer_exporter(), "onnxscript is missing")
    def test_the_newer_exporter_with_weights_in_a_file_beside_the_model(self):
        self.check(self.network.eval(), self.example, dynamo=True, dynamic_shapes={"x": {0: torch.export.Dim("n")}})


if __name__ == "__main__":
    unittest.main()
