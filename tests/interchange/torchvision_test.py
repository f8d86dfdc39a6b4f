"""Models of the zoo that torchvision has, too: weights go to torchvision and come from it by their names, and both
compute the same."""

import json
import pathlib
import struct
import sys
import tempfile
import unittest

try:
    import numpy as np
    import torch
    import torchvision
except ImportError as missing:
    print(f"skipped: {missing}")
    sys.exit(4)

import probe

LIMIT = 1e-5  # relative norm
CLASSES = 30
BATCH = 3
CODES = {torch.float32: "F32", torch.int64: "I64"}
ARRAYS = {"F32": np.float32}

# Text of the model, and torchvision's.
MODELS = {
    "mobilenet_v2": ("mobilenet_v2 {}", lambda: torchvision.models.mobilenet_v2(num_classes=CLASSES)),
    "narrow": ("mobilenet_v2 { width: 0.35 }",
               lambda: torchvision.models.mobilenet_v2(num_classes=CLASSES, width_mult=0.35)),
    "resnet18": ("resnet { depth: 18 }", lambda: torchvision.models.resnet18(num_classes=CLASSES)),
}


def read_tensors(file):
    content = pathlib.Path(file).read_bytes()
    (length,) = struct.unpack("<Q", content[:8])
    numbers = content[8 + length:]
    return {name: torch.from_numpy(np.frombuffer(numbers[slice(*entry["data_offsets"])], ARRAYS[entry["dtype"]])
                                   .reshape(entry["shape"]).copy())
            for name, entry in json.loads(content[8:8 + length]).items() if name != "__metadata__"}


def write_tensors(file, tensors):
    header, numbers = {}, b""
    for name, tensor in tensors.items():
        content = tensor.detach().numpy().tobytes()
        header[name] = {"dtype": CODES[tensor.dtype], "shape": list(tensor.shape),
                        "data_offsets": [len(numbers), len(numbers) + len(content)]}
        numbers += content
    text = json.dumps(header).encode()
    file.write_bytes(struct.pack("<Q", len(text)) + text + numbers)


def write_images(directory):
    """The smallest data set that a job accepts."""
    random = np.random.default_rng(1)
    for split in ("train", "test"):
        np.save(directory / f"{split}_images.npy", random.standard_normal((CLASSES, 3, 32, 32)).astype("float32"))
        np.save(directory / f"{split}_labels.npy", np.arange(CLASSES))


def with_statistics(model, seed):
    """Running statistics as after training."""
    torch.manual_seed(seed)
    for module in model.modules():
        if isinstance(module, torch.nn.BatchNorm2d):
            module.running_mean.normal_(0.0, 0.3)
            module.running_var.uniform_(0.5, 1.5)
    return model.eval()


def computed_by(model, images):
    with torch.no_grad():
        return model(torch.from_numpy(images)).numpy()


class Torchvision(unittest.TestCase):
    images = np.random.default_rng(7).standard_normal((BATCH, 3, 64, 96), np.float32)

    def test_weights_go_to_torchvision(self):
        for name, (text, make) in MODELS.items():
            with self.subTest(name), tempfile.TemporaryDirectory() as directory:
                run = probe.make_run(pathlib.Path(directory) / "run", f"zoo {{ {text} }}", probe.images(3, 64, 96, CLASSES))
                tensors = read_tensors(probe.export(run, directory + "/weights.safetensors", "--format", "safetensors"))
                model = make().eval()
                model.load_state_dict(tensors)  # torch adds the counters num_batches_tracked
                expected = computed_by(model, self.images)
                self.assertLess(probe.relative_norm(probe.output_of(run, self.images), expected), LIMIT)

    def test_weights_come_from_torchvision(self):
        for name, (text, make) in MODELS.items():
            with self.subTest(name), tempfile.TemporaryDirectory() as directory:
                directory = pathlib.Path(directory)
                model = with_statistics(make(), 3)
                write_tensors(directory / "weights.safetensors", model.state_dict())
                write_images(directory)
                job = directory / "job.txtpb"
                job.write_text(probe.job_text(f"zoo {{ {text} }}", probe.images(3, 32, 32, CLASSES))
                               + 'initialize { from: "weights.safetensors" } training { batch_size: 8 max_epochs: 1 }\n',
                               encoding="utf-8")
                said = probe.call(probe.PROGRAM, "train", job, "--output", directory / "trained", "--data-root", directory)
                self.assertIn(f"{len([k for k in model.state_dict() if 'num_batches' not in k])} tensors", said)
                # A run's own model gets the same weights.
                run = probe.make_run(directory / "run", f"zoo {{ {text} }}", probe.images(3, 64, 96, CLASSES))
                weights = {key: value for key, value in model.state_dict().items() if "num_batches" not in key}
                write_tensors(run / "model.safetensors", weights)
                expected = computed_by(model, self.images)
                self.assertLess(probe.relative_norm(probe.output_of(run, self.images), expected), LIMIT)


if __name__ == "__main__":
    unittest.main()
