"""Files that Keras' own exporter has written, with each of its backends, compute here what they compute in Keras.

The files and what Keras 3.15.1 computes are in keras_files; write_files.py writes them. Their versions: JAX 0.10.2 and
jax2onnx 0.17.1, TensorFlow 2.21.0 and tf2onnx 1.17.0, PyTorch 2.15.0, onnxconverter-common 1.16.0.
"""

import json
import pathlib
import struct
import sys
import tempfile
import unittest

try:
    import numpy as np
except ImportError as missing:
    print(f"skipped: {missing}")
    sys.exit(4)

import probe

FILES = pathlib.Path(__file__).resolve().with_name("keras_files")
EXPECTED = json.loads((FILES / "expected.json").read_text(encoding="utf-8"))
LIMIT = 1e-5  # relative norm of predictions
HALF_LIMIT = 2e-3  # of a file whose weights are in half precision
# An epoch is one mini-batch, which holds all examples.
JOB = """
model { zoo { mlp {} } }
data { npy { directory: "data" classes: 5 height: 14 width: 10 pixels: FLOAT32 } }
training { batch_size: 16 max_epochs: 6 }
optimizer { sgd { momentum: 0.9 } }
learning_rate { base: 0.05 }
learners { per_device { fixed: 1 } }
devices: "cpu"
"""
IS_KEPT = {"jax-plain-first", "jax-plain-last", "torch-plain-last-unfolded"}  # files that hold batch norm's numbers


def examples(shape, batch=2):
    """The images of write_files.py."""
    count = batch * int(np.prod(shape))
    return np.sin(np.arange(count) * 0.37 + 0.1 * np.floor(np.arange(count) / 7)).astype(np.float32).reshape(batch, *shape)


def softmax(logits):
    powers = np.exp(logits - logits.max(1, keepdims=True))
    return powers / powers.sum(1, keepdims=True)


def tensors_of(file):
    """The tensors of a safetensors file."""
    content = file.read_bytes()
    (length,) = struct.unpack("<Q", content[:8])
    header = json.loads(content[8:8 + length])
    header.pop("__metadata__", None)
    begin = 8 + length
    return {name: np.frombuffer(content[begin + entry["data_offsets"][0]:begin + entry["data_offsets"][1]], np.float32)
            for name, entry in header.items()}


class KerasImport(unittest.TestCase):
    def setUp(self):
        folder = tempfile.TemporaryDirectory()
        self.addCleanup(folder.cleanup)
        self.run_ = pathlib.Path(folder.name) / "run"

    def import_(self, name):
        return probe.call(probe.PROGRAM, "import", FILES / f"{name}.onnx", "--output", self.run_)

    def check_output(self, name, limit):
        case = EXPECTED[f"{name}.onnx"]
        images = examples(case["shape"])
        if "-last" in name:
            images = np.ascontiguousarray(images.transpose(0, 3, 1, 2))
        output, expected = probe.output_of(self.run_, images), np.array(case["output"])
        if "-plain-" in name:  # a softmax at the end is left out
            output = softmax(output)
        error = probe.relative_norm(output, expected)
        print(f"{name}: relative norm of the difference {error:.1e}")
        self.assertLess(error, limit)

    def test_every_file(self):
        self.assertEqual(sorted(EXPECTED), sorted(file.name for file in FILES.glob("*.onnx")))
        for file in EXPECTED:
            with self.subTest(file):
                self.setUp()
                name = file.removesuffix(".onnx")
                self.import_(name)
                self.check_output(name, HALF_LIMIT if name.endswith("half") else LIMIT)

    def test_batch_norm_is_kept_where_the_file_has_its_numbers(self):
        for name in IS_KEPT:
            with self.subTest(name):
                self.setUp()
                self.import_(name)
                tensors, job = tensors_of(self.run_ / "model.safetensors"), (self.run_ / "job.txtpb").read_text()
                norms = [layer.removesuffix(".running_var") for layer in tensors if layer.endswith(".running_var")]
                expected = EXPECTED[f"{name}.onnx"]["norms"]
                self.assertEqual(len(norms), len(expected))
                self.assertEqual(job.count("batch_norm {"), len(expected))
                self.assertEqual(job.count("epsilon: 0.001"), 2)  # the other one has ours
                for norm in expected:
                    (layer,) = [layer for layer in norms if np.array_equal(tensors[f"{layer}.running_var"],
                                                                           np.float32(norm["running_var"]))]
                    ones = np.ones(len(norm["running_var"]), np.float32)
                    for part, usual in (("weight", ones), ("bias", 0 * ones), ("running_mean", None)):
                        np.testing.assert_array_equal(tensors[f"{layer}.{part}"], np.float32(norm.get(part, usual)))

    def test_the_first_losses_of_training(self):
        """Batch norm that JAX spells out normalizes with the statistics of the mini-batch, as in Keras."""
        case = EXPECTED["jax-train-last.onnx"]
        images = np.ascontiguousarray(examples(case["shape"], 16).transpose(0, 3, 1, 2))
        losses = probe.losses_of_training(FILES / "jax-train-last.onnx", JOB, images, np.arange(16) % 5, self.run_.parent)
        difference = np.abs(losses / np.array(case["losses"]) - 1).max()
        print(f"losses of training: relative difference {difference:.1e}")
        self.assertEqual(len(losses), 6)
        self.assertLess(difference, LIMIT)

    def test_other_files_say_what_became_of_batch_norm(self):
        for name in ("tensorflow-plain-last", "torch-plain-last"):
            with self.subTest(name):
                self.setUp()
                self.assertIn("batch norm", self.import_(name))

    def test_half_precision_is_said(self):
        self.assertIn("half precision", self.import_("tensorflow-gates-last-half"))


if __name__ == "__main__":
    unittest.main()
