"""Stock TensorBoard reads the event files of runs: every scalar, the text, and the hyper-parameters."""

import json
import math
import pathlib
import re
import struct
import subprocess
import sys
import tempfile
import time
import unittest
import urllib.parse
import urllib.request

from tensorboard.backend.event_processing import event_file_loader
from tensorboard.backend.event_processing.event_accumulator import EventAccumulator
from tensorboard.compat.proto import event_pb2

import runs

# Fields of an epoch's line that become curves of training, beside the metrics.
MORE = ("learning_rate", "images_per_second", "replica_distance", "replica_spread")


def curve_of(field):
    """Returns the folder and the tag that a field of the line becomes; None if it becomes none."""
    if field in MORE:
        return "train", field
    folder, _, tag = field.partition("_")
    return (folder, tag) if folder in ("train", "test", "validation") else None


def float32(value):
    return struct.unpack("f", struct.pack("f", value))[0]


def expected_curves(run):
    """Returns the points that metrics.jsonl describes: (folder, tag) -> [(step, value)]."""
    curves = {}
    for row in runs.rows(run, "epoch", "rollback"):
        if row["event"] == "rollback":
            curves = {key: [p for p in points if p[0] <= row["to_batch"]] for key, points in curves.items()}
            continue
        for field, value in row.items():
            if curve_of(field) and value is not None:
                curves.setdefault(curve_of(field), []).append((row["batch"], float32(value)))
        devices = len(runs.rows(run, "start")[0]["devices"])
        curves.setdefault(("train", "learners"), []).append((row["batch"], row["learners_per_device"] * devices))
    finish = runs.rows(run, "finish")
    if finish and ("test", "loss") not in curves:  # a run with a validation set
        for field, value in finish[0].items():
            if field.startswith("test_") and value is not None:
                curves[curve_of(field)] = [(finish[0]["mini_batches"], float32(value))]
    return curves


def readers_of(run):
    folders = {path.parent for path in pathlib.Path(run, "tensorboard").rglob("events.out.tfevents.*")}
    return {str(folder.relative_to(pathlib.Path(run, "tensorboard"))): EventAccumulator(str(folder)) for folder in folders}


def curves_of(readers):
    curves = {}
    for folder, reader in readers.items():
        reader.Reload()
        for tag in reader.Tags()["scalars"]:
            curves[folder, tag] = [(event.step, event.value) for event in reader.Scalars(tag)]
    return curves


class Server:
    """TensorBoard itself, on a free port of this machine."""

    def __init__(self, folder):
        self.process = subprocess.Popen(
            [sys.executable, "-m", "tensorboard.main", f"--logdir={folder}", "--port=0", "--host=127.0.0.1", "--reload_interval=1"],
            stderr=subprocess.PIPE,
            stdout=subprocess.DEVNULL,
            text=True,
        )
        self.address = None
        for line in self.process.stderr:
            found = re.search(r"http://127\.0\.0\.1:\d+/", line)
            if found:
                self.address = found.group()
                break

    def __enter__(self):
        return self

    def __exit__(self, *_):
        self.process.terminate()
        self.process.stderr.close()
        self.process.wait()

    def points(self, run, tag):
        """The present points of a curve: (step, value)."""
        runs_there = self.get("plugin/scalars/tags")
        if tag not in runs_there.get(run, {}):
            return []
        return [tuple(point[1:]) for point in self.get("plugin/scalars/scalars", run=run, tag=tag)]

    def await_points(self, run, tag, points):
        """Waits until TensorBoard shows these points and no others. CTest ends a wait that is in vain."""
        while self.points(run, tag) != points:
            time.sleep(0.1)

    def get(self, path, body=None, **query):
        url = f"{self.address}data/{path}?{urllib.parse.urlencode(query)}"
        data = json.dumps(body).encode() if body is not None else None
        opener = urllib.request.build_opener(urllib.request.ProxyHandler({}))
        request = urllib.request.Request(url, data, {"Content-Type": "application/json"})
        with opener.open(request) as answer:
            return json.load(answer)


class TensorBoard(unittest.TestCase):
    def setUp(self):
        self.folder = tempfile.TemporaryDirectory()
        self.addCleanup(self.folder.cleanup)
        self.run_path = pathlib.Path(self.folder.name, "run")

    def check_curves(self, readers):
        expected = expected_curves(self.run_path)
        self.assertEqual(curves_of(readers), expected)
        return expected

    def test_returns_every_scalar_of_a_run(self):
        runs.train(self.run_path, 3)
        curves = self.check_curves(readers_of(self.run_path))
        self.assertEqual(len(curves), 11)
        for points in curves.values():
            self.assertEqual(len(points), 3)
            self.assertTrue(all(math.isfinite(value) for _, value in points))

    def test_returns_the_scalars_of_a_validation_set_and_the_test_scores_at_the_end(self):
        runs.train(self.run_path, 2, "--set=data.validation.fraction=0.1")
        curves = self.check_curves(readers_of(self.run_path))
        self.assertEqual(len(curves["validation", "accuracy"]), 2)
        self.assertEqual(len(curves["test", "accuracy"]), 1)

    def test_follows_a_run_that_was_killed_and_resumed(self):
        runs.train_and_kill(self.run_path, 1000)
        readers = readers_of(self.run_path)
        lost = curves_of(readers)["train", "loss"]
        checkpoint = runs.rows(self.run_path, "checkpoint")[-1]
        self.assertGreater(lost[-1][0], checkpoint["batch"])
        epochs = round(checkpoint["epoch"]) + 2
        runs.train(self.run_path, epochs, "--resume=auto")
        self.assertEqual(len(runs.rows(self.run_path, "resume")), 1)
        curves = self.check_curves(readers)  # they have seen the epochs that were lost
        self.assertEqual(len(curves["train", "loss"]), epochs)
        self.assertEqual(curves, curves_of(readers_of(self.run_path)))
        for folder in ("", "train", "test"):
            files = sorted(pathlib.Path(self.run_path, "tensorboard", folder).glob("events.out.tfevents.*"))
            self.assertEqual([path.stat().st_size > 0 for path in files], [False, True], folder)

    def test_goes_on_after_the_last_point_when_a_run_is_made_longer(self):
        runs.train(self.run_path, 2)
        readers = readers_of(self.run_path)
        curves_of(readers)
        runs.train(self.run_path, 4, "--resume=auto")
        curves = self.check_curves(readers)
        self.assertEqual(len(curves["test", "accuracy"]), 4)

    def test_shows_a_run_that_was_killed_and_resumed_in_an_open_page(self):
        curve = "run/tensorboard/train", "loss"
        with Server(self.folder.name) as server:
            runs.train_and_kill(self.run_path, 1000)
            lost = expected_curves(self.run_path)["train", "loss"]
            server.await_points(*curve, lost)
            checkpoint = runs.rows(self.run_path, "checkpoint")[-1]
            self.assertGreater(lost[-1][0], checkpoint["batch"])
            runs.train(self.run_path, round(checkpoint["epoch"]) + 2, "--resume=auto")
            server.await_points(*curve, expected_curves(self.run_path)["train", "loss"])

    def test_forgets_what_a_run_has_gone_back_from(self):
        # Weight decay beyond its bound of stability: the weights overflow in the second epoch, but not at a twentieth of the rate.
        runs.train(
            self.run_path,
            3,
            "--set=learners.per_device.fixed=1",
            "--set=checkpoint.every_epochs=1",
            "--set=training.on_divergence=ROLL_BACK",
            "--set=training.spike_factor=1000000",
            "--set=training.rollback_factor=0.05",
            "--set=optimizer={sgd {weight_decay: 1}}",
            "--set=learning_rate.base=2.03",
        )
        back = runs.rows(self.run_path, "rollback")[0]
        self.assertGreater(back["to_batch"], 0)
        curves = self.check_curves(readers_of(self.run_path))
        self.assertEqual(len(curves["train", "loss"]), 3)
        self.assertEqual(curves["train", "loss"][0][0], back["to_batch"])  # the end of the first epoch

    def test_accepts_every_checksum(self):
        runs.train(self.run_path, 1)
        for path in pathlib.Path(self.run_path, "tensorboard").rglob("events.out.tfevents.*"):
            events = list(event_file_loader.RawEventFileLoader(str(path)).Load())
            content = path.read_bytes()
            self.assertEqual(sum(len(event) + 16 for event in events), len(content))
            self.assertEqual(event_pb2.Event.FromString(events[0]).file_version, "brain.Event:2")
            path.write_bytes(content[:-5] + bytes([content[-5] ^ 1]) + content[-4:])  # the loader does check
            self.assertEqual(len(list(event_file_loader.RawEventFileLoader(str(path)).Load())), len(events) - 1)

    def test_shows_scalars_text_and_hyper_parameters_in_its_pages(self):
        runs.train(self.run_path, 2)
        with Server(self.folder.name) as server:
            self.assertEqual(set(server.get("runs")), {f"run/tensorboard{end}" for end in ("", "/train", "/test")})
            loss = server.get("plugin/scalars/scalars", run="run/tensorboard/test", tag="loss")
            self.assertEqual([tuple(point[1:]) for point in loss], expected_curves(self.run_path)["test", "loss"])
            text = server.get("plugin/text/text", run="run/tensorboard", tag="job")
            self.assertIn("batch_size", text[0]["text"])
            groups = server.get(
                "plugin/hparams/session_groups",
                {
                    "experimentName": "",
                    "allowedStatuses": ["STATUS_SUCCESS"],
                    "colParams": [
                        {"hparam": "training.max_epochs", "includeInResult": True},
                        {"hparam": "optimizer.sgd.momentum", "includeInResult": True},
                        {"metric": {"group": "test", "tag": "accuracy"}, "includeInResult": True},
                    ],
                    "startIndex": 0,
                    "sliceSize": 10,
                },
            )["sessionGroups"]
            self.assertEqual(len(groups), 1)
            self.assertEqual(groups[0]["hparams"]["training.max_epochs"], 2.0)
            self.assertIn("optimizer.sgd.momentum", groups[0]["hparams"])
            metrics = {(m["name"]["group"], m["name"]["tag"]): m["value"] for m in groups[0]["metricValues"]}
            accuracy = runs.rows(self.run_path, "epoch")[-1]["test_accuracy"]
            self.assertAlmostEqual(metrics["test", "accuracy"], accuracy, places=6)


if __name__ == "__main__":
    unittest.main()
