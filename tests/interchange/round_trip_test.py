"""A trained run that is exported and imported is the same model: to evaluate, to export, to train on."""

import json
import os
import pathlib
import subprocess
import tempfile
import unittest

import onnx_bytes as onnx

PROGRAM = os.environ["ARBALEST_PROGRAM"]
CONFIGS = pathlib.Path(__file__).parents[2] / "configs"


class RoundTrip(unittest.TestCase):
    @classmethod
    def setUpClass(cls):
        cls.directory = tempfile.TemporaryDirectory()
        cls.addClassCleanup(cls.directory.cleanup)
        cls.folder = pathlib.Path(cls.directory.name)
        cls.job = CONFIGS / "convnet-digits.txtpb"
        cls.call("train", cls.job, "--set", "training.max_epochs=1", "--set", "learners.per_device.fixed=1",
                 "--output", "run")
        cls.call("export", "run", "--output", "run.onnx", "--softmax")

    @classmethod
    def call(cls, *arguments, code=0):
        done = subprocess.run([PROGRAM, *map(str, arguments)], cwd=cls.folder, capture_output=True, text=True, check=False)
        if done.returncode != code:
            raise AssertionError(f"{arguments} ended with {done.returncode}, not {code}:\n{done.stderr}")
        return done.stdout if code == 0 else done.stderr

    def test_the_imported_model_has_the_accuracy_of_the_run(self):
        self.call("import", "run.onnx", "--output", "judged", "--job", self.job)
        expected = json.loads(self.call("evaluate", "run", "--json"))
        got = json.loads(self.call("evaluate", "judged", "--json"))
        self.assertEqual(got["test_accuracy"], expected["test_accuracy"])
        self.assertEqual(got["examples"], 5000)

    def test_training_starts_from_the_imported_weights(self):
        self.call("import", "run.onnx", "--output", "start", "--job", self.job)
        self.call("train", "start/job.txtpb", "--set", "training.max_epochs=1", "--set", "learning_rate.base=1e-9",
                  "--set", "training.batch_norm_statistics=AVERAGED", "--set", "learners.per_device.fixed=1", "--output", "further")
        before = json.loads((self.folder / "run/summary.json").read_text(encoding="utf-8"))["test_accuracy"]
        after = json.loads((self.folder / "further/summary.json").read_text(encoding="utf-8"))["test_accuracy"]
        self.assertLess(abs(before - after), 0.02)
        self.assertGreater(after, 0.5)

    def test_the_copy_gives_the_same_bytes_and_keeps_the_description(self):
        self.call("import", "run.onnx", "--output", "copy")
        self.call("export", "copy", "--output", "copy.onnx", "--softmax")
        self.assertEqual((self.folder / "run.onnx").read_bytes(), (self.folder / "copy.onnx").read_bytes())
        text = (self.folder / "copy/job.txtpb").read_text(encoding="utf-8")
        self.assertIn("normalization", text)
        self.assertIn('class_names: "7"', text)
        self.call("validate", "copy/job.txtpb")

    def test_safetensors(self):
        self.call("export", "run", "--format", "safetensors", "--output", "run.safetensors")
        self.assertEqual((self.folder / "run.safetensors").read_bytes(), (self.folder / "run/model.safetensors").read_bytes())

    def test_a_job_that_the_model_does_not_fit(self):
        wrong = self.folder / "wrong.txtpb"
        wrong.write_text('model { zoo { mlp {} } } data { cifar10 {} } learning_rate { base: 0.1 }', encoding="utf-8")
        message = self.call("import", "run.onnx", "--output", "mismatch", "--job", wrong, code=3)
        self.assertIn("of shape 1x28x28 and 10 classes, but those of this job's data are image of shape 3x32x32", message)
        self.assertFalse((self.folder / "mismatch").exists())
        self.call("import", "run.onnx", "--output", "mismatch", "--job", "nowhere.txtpb", code=3)

    def test_the_model_of_the_job_does_not_count(self):
        rest = "data { digits {} } learning_rate { base: 0.125 } training { max_epochs: 7 }"
        large = 'layers { name: "a" input: "image" conv { filters: 2 kernel: 99 } }'
        for number, model in enumerate(("", "model { zoo { inception_v3 {} } }", f"model {{ {large} }}",
                                        'initialize { from: "nowhere" }')):
            job = self.folder / f"own{number}.txtpb"
            job.write_text(f"{model} {rest}", encoding="utf-8")
            self.call("import", "run.onnx", "--output", f"own{number}", "--job", job)
            text = (self.folder / f"own{number}/job.txtpb").read_text(encoding="utf-8")
            for part in ("base: 0.125", "max_epochs: 7", 'from: "model.safetensors"'):
                self.assertIn(part, text)
            self.call("validate", f"own{number}/job.txtpb")

    def test_the_rest_of_the_job_is_checked(self):
        job = self.folder / "rest.txtpb"
        job.write_text("data { digits {} }\nlearning_rate { base: -1 }\n", encoding="utf-8")
        message = self.call("import", "run.onnx", "--output", "rest", "--job", job, code=3)
        self.assertIn("rest.txtpb:2:17: error: base must be in", message)
        self.assertNotIn("model", message.replace("model.onnx", ""))
        job.write_text("learning_rate { base: 0.1 }\n", encoding="utf-8")
        self.assertIn("no data is chosen", self.call("import", "run.onnx", "--output", "rest", "--job", job, code=3))
        self.assertFalse((self.folder / "rest").exists())

    def test_data_beside_the_job_stay_there(self):
        (self.folder / "jobs").mkdir()
        (self.folder / "jobs/near.txtpb").write_text(
            'model { zoo { mlp {} } } data { npy { directory: "./arrays" classes: 10 channels: 1 height: 28 width: 28 } } '
            "learning_rate { base: 0.1 }", encoding="utf-8")
        self.call("import", "run.onnx", "--output", "near", "--job", "jobs/near.txtpb")
        text = (self.folder / "near/job.txtpb").read_text(encoding="utf-8")
        self.assertIn(f'directory: "{self.folder.resolve() / "jobs/arrays"}"', text)

    def test_outputs_that_cannot_be_written(self):
        for output in ("nowhere/model.onnx", ".", "run", "/dev/full"):
            message = self.call("export", "run", "--output", output, code=2)
            self.assertIn("--output", message)
        self.assertIn("safetensors", self.call("export", "run", "--format", "safetensors", "--softmax", "--output", "a",
                                               code=2))
        self.assertFalse((self.folder / "a").exists())
        self.call("export", "nowhere", "--output", "a", code=2)

    def test_a_damaged_model_is_not_exported(self):
        self.call("import", "run.onnx", "--output", "damaged")
        weights = self.folder / "damaged/model.safetensors"
        content = bytearray(weights.read_bytes())
        content[-5] ^= 1
        weights.write_bytes(content)
        self.assertIn("SHA-256", self.call("export", "damaged", "--output", "damaged.onnx", code=5))
        self.assertFalse((self.folder / "damaged.onnx").exists())

    def test_a_model_of_another_program_says_that_its_normalization_is_unknown(self):
        (self.folder / "other.onnx").write_bytes(onnx.linear())
        done = subprocess.run([PROGRAM, "import", "other.onnx", "--output", "other"], cwd=self.folder, capture_output=True,
                              text=True, check=True)
        self.assertIn("data.normalization", done.stderr)


if __name__ == "__main__":
    unittest.main()
