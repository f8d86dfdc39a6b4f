"""Networks that PyTorch's exporters have written arrive as they were, or a warning says what the exporter has changed.

The folder pytorch_files has the files, the script that writes them, and what PyTorch computes. This test needs no
package.
"""

import array
import json
import math
import os
import pathlib
import struct
import subprocess
import tempfile
import unittest
import zlib

PROGRAM = os.environ["ARBALEST_PROGRAM"]
PROBE = os.environ["ARBALEST_MODEL_PROBE"]
FOLDER = pathlib.Path(__file__).resolve().with_name("pytorch_files")
EXPECTED = json.loads((FOLDER / "expected.json").read_text(encoding="utf-8"))
LIMIT = 1e-5  # relative norm

FOLDED = "folded batch norm into {} layers"
COMPUTED = "computed new weights for {} convolutions"
MOVED = "exported in training mode"
SHARED = "several layers use the weights '{}.weight' together"
COMMAND = ('torch.onnx.export(model.eval(), (example,), "model.onnx", training=torch.onnx.TrainingMode.PRESERVE, '
           "do_constant_folding=False, optimize=False)")

# For each file: its batch norms, its dropouts, and the warning.
FILES = {
    "resnet_default": (0, 0, FOLDED.format(6)),
    "resnet_default_train": (0, 1, FOLDED.format(6)),
    "resnet_unoptimized_train": (6, 1, None),
    "resnet_recipe": (6, 0, None),
    "resnet_legacy": (0, 0, COMPUTED.format(6)),
    "resnet_legacy_train": (6, 1, MOVED),
    "resnet_legacy_recipe": (6, 0, None),
    "trainedresnet_default": (0, 0, FOLDED.format(6)),
    "trainedresnet_unoptimized_train": (6, 1, None),
    "trainedresnet_legacy": (0, 0, COMPUTED.format(6)),
    "trainedresnet_legacy_recipe": (6, 0, None),
    "mobilenet_default": (0, 0, FOLDED.format(4)),
    "mobilenet_unoptimized_train": (4, 1, None),
    "mobilenet_legacy_recipe": (4, 0, None),
    "squeezenet_default": (0, 0, None),
    "squeezenet_unoptimized_train": (0, 1, None),
    "squeezenet_legacy": (0, 0, None),
    "squeezenet_legacy_recipe": (0, 0, None),
    "lenet_default": (0, 0, None),
    "lenet_recipe": (0, 0, None),
    "lenet_legacy": (0, 0, None),
    "lenet_default_free": (0, 0, None),
    "lenet_recipe_free": (0, 0, None),
    "lenet_legacy_free": (0, 0, None),
    "tied_default": (0, 0, SHARED.format("second")),
    "tied_legacy": (0, 0, SHARED.format("first")),
    "dropouts_default": (0, 0, None),
    "dropouts_default_train": (0, 2, None),
    "dropouts_unoptimized_train": (0, 2, None),
    "dropouts_unoptimized_train_free": (0, 2, None),
}


def run(*arguments):
    done = subprocess.run([str(argument) for argument in arguments], capture_output=True, text=True, check=False)
    if done.returncode != 0:
        raise AssertionError(f"{arguments} ended with {done.returncode}:\n{done.stderr}")
    return done.stderr


def example(shape):
    """The input for which write_files.py has computed the output."""
    count = EXPECTED["batch"] * math.prod(shape)
    return array.array("f", (37 * k % 101 / 50 - 1 for k in range(count)))


def output_of(directory, numbers):
    files = directory / "input", directory / "output"
    files[0].write_bytes(numbers.tobytes())
    run(PROBE, "run", directory, EXPECTED["batch"], *files)
    output = array.array("f")
    output.frombytes(files[1].read_bytes())
    return output


def relative_norm(got, expected):
    if len(got) != len(expected):
        raise AssertionError(f"{len(got)} numbers, not {len(expected)}")
    return math.dist(got, expected) / math.hypot(*expected)


def tensors_of(directory):
    """The shape and the elements of each tensor, by name."""
    content = (directory / "model.safetensors").read_bytes()
    (length,) = struct.unpack("<Q", content[:8])
    tensors = {}
    for name, entry in json.loads(content[8:8 + length]).items():
        if name == "__metadata__":
            continue
        begin, end = (8 + length + at for at in entry["data_offsets"])
        values = array.array("f")
        values.frombytes(content[begin:end])
        tensors[name] = (entry["shape"], values)
    return tensors


def png(size, rgb, *chunks):
    """A plain picture, with these chunks about its colors."""
    def chunk(kind, data):
        return struct.pack(">I", len(data)) + kind + data + struct.pack(">I", zlib.crc32(kind + data))
    rows = size * (b"\0" + size * bytes(rgb))
    parts = [(b"IHDR", struct.pack(">2I5B", size, size, 8, 2, 0, 0, 0)), *chunks, (b"IDAT", zlib.compress(rows)), (b"IEND", b"")]
    return b"\x89PNG\r\n\x1a\n" + b"".join(chunk(*part) for part in parts)


class PyTorchFiles(unittest.TestCase):
    def imported(self, name):
        folder = tempfile.TemporaryDirectory()
        self.addCleanup(folder.cleanup)
        directory = pathlib.Path(folder.name) / "run"
        warnings = run(PROGRAM, "import", FOLDER / f"{name}.onnx", "--output", directory)
        warnings = [line for line in warnings.splitlines() if "how its input is normalized" not in line]
        return directory, warnings

    def check_warnings(self, warnings, expected):
        if expected is None:
            self.assertEqual(warnings, [])
            return
        self.assertEqual(len(warnings), 1, warnings)
        self.assertIn(expected, warnings[0])
        self.assertEqual(COMMAND in warnings[0], "use the weights" not in warnings[0])

    def check_tensors(self, directory, network, is_changed):
        """Batch norm that is there has the names and the statistics that it had before the export."""
        tensors = tensors_of(directory)
        if network["statistics"] and not any("running" in name for name in tensors):
            return  # batch norm is folded
        self.assertEqual({name: shape for name, (shape, _) in tensors.items()}, network["shapes"])
        for name, expected in network["statistics"].items():
            same = tensors[name][1] == array.array("f", expected)
            self.assertTrue(same or is_changed, name)

    def test_every_file_has_an_expectation(self):
        self.assertEqual({f"{name}.onnx" for name in FILES}, {path.name for path in FOLDER.glob("*.onnx")})
        self.assertEqual({f"{name}.onnx" for name in FILES}, set(EXPECTED["files"]))

    def test_each_file(self):
        for name, (norms, dropouts, warning) in FILES.items():
            with self.subTest(name):
                directory, warnings = self.imported(name)
                self.check_warnings(warnings, warning)
                job = (directory / "job.txtpb").read_text(encoding="utf-8")
                self.assertEqual((job.count(" batch_norm {"), job.count(" dropout {")), (norms, dropouts))
                entry = EXPECTED["files"][f"{name}.onnx"]
                network = EXPECTED["networks"][entry["network"]]
                expected = entry["output_after"] or network["output"]
                self.assertLess(relative_norm(output_of(directory, example(network["example"])), expected), LIMIT)
                if entry["network"] != "Tied":  # there, one name stands for two layers
                    self.check_tensors(directory, network, entry["is_changed"])

    def test_an_imported_model_reads_pictures_by_the_present_rules(self):
        directory, _ = self.imported("lenet_default")
        self.assertEqual(EXPECTED["networks"]["LeNet"]["example"], [1, 12, 12])
        answers = []
        for name, chunks in (("plain", []), ("described", [(b"sRGB", b"\0")])):
            picture = directory / f"{name}.png"
            picture.write_bytes(png(12, (255, 0, 0), *chunks))
            done = subprocess.run([PROGRAM, "predict", directory, picture], capture_output=True, text=True, check=True)
            self.assertNotIn("older version", done.stderr)
            answers.append({key: value for key, value in json.loads(done.stdout).items() if key != "file"})
        self.assertEqual(answers[0], answers[1])

    def test_only_the_training_mode_of_the_older_exporter_changes_a_network(self):
        changed = [name for name, entry in EXPECTED["files"].items() if entry["is_changed"]]
        self.assertEqual(changed, ["resnet_legacy_train.onnx"])

    def test_the_command_of_the_warning_is_that_of_the_documentation(self):
        page = (FOLDER.parents[2] / "docs/onnx.md").read_text(encoding="utf-8")
        self.assertIn(COMMAND, " ".join(page.split()))

    def test_dropout_keeps_its_ratio(self):
        for name, ratio in (("resnet_unoptimized_train", "0.25"), ("resnet_default_train", "0.25"),
                            ("resnet_legacy_train", "0.25"), ("mobilenet_unoptimized_train", "0.2")):
            directory, _ = self.imported(name)
            self.assertIn(f"dropout {{ ratio: {ratio} }}", (directory / "job.txtpb").read_text(encoding="utf-8"))

    def test_dropout_that_is_spelled_out(self):
        for name in ("dropouts_default_train", "dropouts_unoptimized_train", "dropouts_unoptimized_train_free"):
            directory, _ = self.imported(name)
            job = (directory / "job.txtpb").read_text(encoding="utf-8")
            for ratio in ("0.125", "0.2"):
                self.assertEqual(job.count(f"dropout {{ ratio: {ratio} }}"), 1, job)


if __name__ == "__main__":
    unittest.main()
