"""A trained model answers as many examples of its test set correctly in onnxruntime as `arbalest evaluate` counts.

Both programs read the same images, prepared as in evaluation. Without arguments this is a test with LeNet on the
built-in digits. With arguments it trains one job and adds a line to a file of results:

    accuracy_test.py --job configs/resnet20-cifar10.txtpb --set training.max_epochs=1 --results accuracy.jsonl
"""

import argparse
import json
import os
import pathlib
import sys
import tempfile
import unittest

try:
    import numpy as np
    import onnxruntime
except ImportError as missing:
    print(f"skipped: {missing}")
    sys.exit(4)

import probe

ROOT = pathlib.Path(__file__).resolve().parents[2]
BATCH = 1000


def prepared_test_set(run, data_root, channels_and_size):
    """The normalized images [n, c, h, w] and the labels [n] of a run's test set."""
    files = run / "test_images", run / "test_labels"
    probe.call(probe.PROBE, "examples", run, data_root, *files)
    return np.fromfile(files[0], np.float32).reshape(-1, *channels_and_size), np.fromfile(files[1], np.int32)


def in_parts(compute, images):
    return np.concatenate([compute(images[begin : begin + BATCH]) for begin in range(0, len(images), BATCH)])


def compare(job, settings, data_root, directory):
    """Trains a job, and returns the counts of both programs with the examples about which they differ."""
    run, file = directory / "run", directory / "model.onnx"
    probe.call(probe.PROGRAM, "train", job, "--quiet", "--output", run, "--data-root", data_root,
               *(f"--set={setting}" for setting in settings))
    probe.export(run, file)
    evaluated = json.loads(probe.output_from(probe.PROGRAM, "evaluate", run, "--data-root", data_root, "--json"))
    session = onnxruntime.InferenceSession(str(file), providers=["CPUExecutionProvider"])
    images, labels = prepared_test_set(run, data_root, session.get_inputs()[0].shape[1:])
    name = session.get_inputs()[0].name
    logits = in_parts(lambda part: session.run(["logits"], {name: part})[0], images)
    own = in_parts(lambda part: probe.output_of(run, part), images)
    differing = np.flatnonzero(own.argmax(1) != logits.argmax(1))
    return {
        "job": pathlib.Path(job).name,
        "set": settings,
        "examples": len(labels),
        "correct": round(evaluated["test_accuracy"] * evaluated["examples"]),
        "correct in onnxruntime": int((logits.argmax(1) == labels).sum()),
        "differing": [{"example": int(example), "label": int(labels[example]), "ours": own[example].tolist(),
                       "onnxruntime": logits[example].tolist()} for example in differing],
        "relative norm of the difference": float(probe.relative_norm(own, logits)),
    }


class Accuracy(unittest.TestCase):
    def test_lenet_on_the_digits(self):
        with tempfile.TemporaryDirectory() as directory:
            settings = ["training.max_epochs=1", "training.target_accuracy=default", "devices=cpu"]
            row = compare(ROOT / "configs/lenet-digits.txtpb", settings, directory, pathlib.Path(directory))
        self.assertEqual(row["examples"], 5000)
        self.assertGreater(row["correct"], 4500)
        self.assertEqual(row["correct in onnxruntime"], row["correct"], row["differing"])
        self.assertLess(row["relative norm of the difference"], 1e-4)


def measure():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--job", required=True)
    parser.add_argument("--set", action="append", default=[], help="PATH=VALUE of the job")
    parser.add_argument("--data-root", default=os.environ.get("ARBALEST_DATA", "data"))
    parser.add_argument("--results", type=pathlib.Path, required=True, help="file to which the line is added")
    arguments = parser.parse_args()
    with tempfile.TemporaryDirectory() as directory:
        row = compare(arguments.job, arguments.set, arguments.data_root, pathlib.Path(directory))
    with arguments.results.open("a", encoding="utf-8") as results:
        results.write(json.dumps({**row, "onnxruntime": onnxruntime.__version__}) + "\n")
    return 0 if row["correct"] == row["correct in onnxruntime"] else 1


if __name__ == "__main__":
    if len(sys.argv) > 1:
        sys.exit(measure())
    unittest.main()
