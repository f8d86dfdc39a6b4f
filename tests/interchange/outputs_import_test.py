"""The end of an imported model: a softmax, a sigmoid, a single output."""

import json
import pathlib
import sys
import tempfile
import unittest

try:
    import numpy as np
except ImportError as missing:
    print(f"skipped: {missing}")
    sys.exit(4)

import onnx_bytes as onnx
import probe
from onnx_bytes import block, integer, node, tensor, value

WEIGHTS = np.random.default_rng(3).standard_normal((6, 3)).astype(np.float32)
EXAMPLES = np.random.default_rng(4).standard_normal((5, 6, 1, 1)).astype(np.float32)
SCORES = EXAMPLES.reshape(5, 6) @ WEIGHTS


def softmax(scores):
    powers = np.exp(scores - scores.max(1, keepdims=True))
    return powers / powers.sum(1, keepdims=True)


def ending_with(*nodes, weights=WEIGHTS, last="y"):
    """A dense layer that writes z, and these nodes."""
    first = node("MatMul", ["x", "w"], "z", name="fc")
    return onnx.model([first, *nodes], [tensor("w", weights.shape, weights.flatten())],
                      outputs=[value(last, ["n", weights.shape[1]])])


def described(content, **metadata):
    """The file as one of our own, with these metadata."""
    pairs = b"".join(block(14, block(1, key) + block(2, text)) for key, text in metadata.items())
    return content.replace(block(2, "test"), block(2, "arbalest"), 1) + pairs


class OutputsImport(unittest.TestCase):
    def setUp(self):
        folder = tempfile.TemporaryDirectory()
        self.addCleanup(folder.cleanup)
        self.folder = pathlib.Path(folder.name)
        self.file = self.folder / "model.onnx"
        self.run_ = self.folder / "run"

    def import_(self, content, *arguments, code=0):
        self.file.write_bytes(content)
        return probe.call(probe.PROGRAM, "import", self.file, "--output", self.run_, *arguments, code=code)

    def check_output(self, expected):
        self.assertLess(probe.relative_norm(probe.output_of(self.run_, EXAMPLES), expected), 1e-5)

    def test_one_softmax_is_left_out(self):
        messages = self.import_(ending_with(node("Softmax", ["z"], "s", integer("axis", 1)), node("Identity", ["s"], "y")))
        self.assertIn("the softmax at the end is left out", messages)
        self.check_output(SCORES)

    def test_a_softmax_before_the_last_one_is_a_layer(self):
        for last in ("Softmax", "LogSoftmax"):
            with self.subTest(last):
                self.setUp()
                self.import_(ending_with(node("Softmax", ["z"], "s"), node("Identity", ["s"], "t"), node(last, ["t"], "y")))
                self.check_output(softmax(SCORES))

    def test_a_job_with_a_softmax_of_its_own(self):
        layers = ('layers { name: "fc" input: "image" dense { units: 3 } } layers { name: "own" input: "fc" softmax {} } '
                  'layers { name: "loss" input: "own" input: "label" softmax_cross_entropy {} }')
        data = 'npy { directory: "." classes: 3 features: 6 pixels: FLOAT32 }'
        run = probe.make_run(self.folder / "made", layers, data)
        for number, options in enumerate([[], ["--softmax"]]):
            file = probe.export(run, self.folder / f"made{number}.onnx", *options)
            again = probe.check_round_trip(file, self.folder / f"again{number}", *options)
            self.assertIn("softmax {", (again / "job.txtpb").read_text(encoding="utf-8"))
            expected = probe.output_of(run, EXAMPLES)
            self.assertLess(np.abs(expected.sum(1) - 1).max(), 1e-5)
            self.assertLess(probe.relative_norm(probe.output_of(again, EXAMPLES), expected), 1e-6)

    def test_a_single_output_is_refused(self):
        for nodes in ([node("Identity", ["z"], "y")], [node("Sigmoid", ["z"], "y")]):
            message = self.import_(ending_with(*nodes, weights=WEIGHTS[:, :1]), code=3)
            self.assertIn("one number for each example", message)
            self.assertIn("two outputs", message)
            self.assertFalse(self.run_.exists())

    def test_a_job_with_one_class_is_refused(self):
        job = self.folder / "one.txtpb"
        job.write_text(probe.job_text(
            'layers { name: "fc" input: "image" dense { units: 1 } } '
            'layers { name: "loss" input: "fc" input: "label" softmax_cross_entropy {} }',
            'npy { directory: "." classes: 1 features: 6 pixels: FLOAT32 }'), encoding="utf-8")
        message = probe.call(probe.PROGRAM, "validate", job, code=3)
        self.assertIn("layer 'loss'", message)
        self.assertIn("units: 2", message)

    def test_a_sigmoid_at_the_end_is_kept_and_noted(self):
        messages = self.import_(ending_with(node("Sigmoid", ["z"], "y")))
        self.assertIn("the model ends in a sigmoid", messages)
        self.check_output(1 / (1 + np.exp(-SCORES)))

    def test_a_job_that_describes_the_input_differently(self):
        description = {"input": "numbers", "job": "given", "shape": "[6, 1, 1]", "outputs": "3", "mean": "[0.5]",
                       "stddev": "[0.25]", "class_names": json.dumps(["cat", "dog", "eel"])}
        content = described(ending_with(node("Identity", ["z"], "logits"), last="logits"), **description)
        job = self.folder / "job.txtpb"
        data = 'npy {{ directory: "." classes: 3 features: 6 pixels: FLOAT32 }} {}'
        for fields, texts in (
                ("normalization { mean: 0 stddev: 1 }", [
                    "mean [0.5] and stddev [0.25] in the ONNX file, mean [0] and stddev [1] in the job",
                    "class 0 is 'cat' in the ONNX file, and the job has no class names"]),
                ('normalization { mean: 0.5 stddev: 0.25 } class_names: ["cat", "eel", "dog"]',
                 ["class 1 is 'dog' in the ONNX file and 'eel' in the job"])):
            job.write_text(probe.job_text("zoo { mlp {} }", data.format(fields)), encoding="utf-8")
            messages = self.import_(content, "--job", job)
            self.assertIn(f"'{job}', which is used", messages)
            for text in texts:
                self.assertIn(text, messages)
            self.assertEqual("mean" in messages, "mean: 0 " in fields)
            for file in self.run_.iterdir():
                file.unlink()
        job.write_text(probe.job_text("zoo { mlp {} }", data.format(
            'normalization { mean: 0.5 stddev: 0.25 } class_names: ["cat", "dog", "eel"]')), encoding="utf-8")
        self.assertNotIn("differently", self.import_(content, "--job", job))

    def test_a_job_that_resizes_images_differently(self):
        weights = np.random.default_rng(5).standard_normal((64, 3)).astype(np.float32)
        file = onnx.model([node("Flatten", ["x"], "f"), node("MatMul", ["f", "w"], "logits", name="fc")],
                          [tensor("w", weights.shape, weights.flatten())], inputs=[value("x", ["n", 1, 8, 8])],
                          outputs=[value("logits", ["n", 3])])
        pairs = {"input": "image", "job": "given", "shape": "[1, 8, 8]", "outputs": "3", "mean": "[0.5]", "stddev": "[0.5]"}
        job = self.folder / "job.txtpb"
        data = ('npy { directory: "." classes: 3 height: 8 width: 8 channels: 1%s } '
                "normalization { mean: 0.5 stddev: 0.5 }")
        job.write_text(probe.job_text("zoo { mlp {} }", data % ""), encoding="utf-8")
        messages = self.import_(described(file, resize="12", **pairs), "--job", job)
        self.assertIn("shorter side is scaled to 12, the job images whose shorter side is scaled to 8", messages)
        self.assertNotIn("mean", messages)
        for written in self.run_.iterdir():
            written.unlink()
        job.write_text(probe.job_text("zoo { mlp {} }", data % " pixels: FLOAT32"), encoding="utf-8")
        messages = self.import_(described(file, resize="8", **pairs), "--job", job)
        self.assertIn("the input is pixels of bytes in the ONNX file and numbers in the job", messages)
        for written in self.run_.iterdir():
            written.unlink()
        job.write_text(probe.job_text("zoo { mlp {} }", data % ""), encoding="utf-8")
        self.assertNotIn("differently", self.import_(described(file, resize="8", **pairs), "--job", job))

    def test_a_description_that_is_damaged_names_the_file(self):
        linear = ending_with(node("Identity", ["z"], "logits"), last="logits")
        good = {"input": "numbers", "job": "given", "shape": "[6, 1, 1]", "outputs": "3", "mean": "[0]", "stddev": "[1]"}
        for changes, text in (({"stddev": "[0]"}, ""), ({"shape": "[7, 1, 1]"}, "another input or output")):
            message = self.import_(described(linear, **{**good, **changes}), code=5)
            self.assertIn(f"'{self.file}': ", message)
            self.assertIn(text, message)
            self.assertFalse(self.run_.exists())


if __name__ == "__main__":
    unittest.main()
