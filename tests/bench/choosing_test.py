"""Tests the choice of competing peers and their mini-batches: bench/comparison/choosing.py."""

import argparse
import json
import pathlib
import sys
import tempfile
import unittest
from unittest import mock

from comparison import machine
from comparison.choosing import Choosing
from comparison.contenders import Peer, RunDied
from comparison.options import ROOT

# A fake peer with the answers of bench/peers/program.py. Its epochs and seconds depend only on its mini-batch.
PROGRAM = """import json, sys
words = sys.argv[1:]
size = int(words[words.index("--mini-batch") + 1]) if "--mini-batch" in words else 32
got = {"mini_batch": size}
if words[0] == "pick":
    among = [after for word, after in zip(words, words[1:]) if word == "--among"] or ["2 ranks", "2 threads"]
    results = [{"name": name, "trains_one_model": True, "got": got} for name in among]
    print(json.dumps({"winner": among[size == 128], "second": (among + [None])[1], "fastest": among[0],
                      "best_of_divisions": among, "results": results}))
else:
    seconds = SECONDS[size]
    if seconds == "died":
        sys.exit("no memory")
    rows = [{"weights": {"test_accuracy": 0.9, "elapsed_seconds": seconds}, "training_seconds": 1}] if seconds else []
    print(json.dumps({"epoch_rows": rows, "preparation_seconds": 1, "got": got,
                      "status": "target_reached" if rows else "diverged"}))
"""


class Comparison:
    """The part of compare.Comparison that Choosing needs."""

    def __init__(self, folder, **arguments):
        self.folder, self.died, self.skipped = folder, [], []
        self.result = {"versions": {}}
        usual = {
            "arrangement": None,
            "quick": False,
            "mini_batches": [64, 128, 256],
            "seeds": [5, 6],
            "max_epochs": None,
        }
        self.arguments = argparse.Namespace(**(usual | arguments))

    def seconds_left(self):
        return 60.0

    def save(self):
        pass

    def skip(self, what):
        self.skipped.append(what)

    def guarded(self, what, work, *arguments):
        try:
            return work(*arguments)
        except RunDied as error:
            self.died.append(f"{what}: {error}")
            return None


class MiniBatches(unittest.TestCase):
    def choose(self, seconds, targets=(0.8, 0.9), **arguments):
        folder = tempfile.TemporaryDirectory()
        self.addCleanup(folder.cleanup)
        program = pathlib.Path(folder.name) / "peer.py"
        program.write_text(PROGRAM.replace("SECONDS", repr(seconds)))
        self.comparison = Comparison(pathlib.Path(folder.name), **arguments)
        self.entry = {"trains": True, "targets": list(targets), "picked": [], "mini_batches": [], "commands": []}
        peer = Peer("it", [sys.executable, str(program)], pathlib.Path(folder.name))
        return [one.name for one in Choosing(self.comparison, "lenet", self.entry).of(peer)]

    def test_the_one_that_is_soonest_at_the_target_competes_beside_the_jobs_own(self):
        self.assertEqual(self.choose({64: 9, 128: 4, 256: 6}), ["it, 2 ranks", "it, 2 threads, mini-batch 128"])
        tried = self.entry["mini_batches"]
        self.assertEqual([(one["mini_batch"], one["seconds"], one["is_chosen"]) for one in tried],
                         [(64, 9, False), (128, 4, True), (256, 6, False)])  # fmt: skip
        self.assertEqual({one["seed"] for one in tried}, {5})
        self.assertEqual(len(self.entry["picked"]), 4)  # once for each mini-batch
        self.assertIn("--target 0.9", " ".join(self.entry["commands"]))
        self.assertEqual(self.comparison.died, [])
        json.dumps(self.entry)

    def test_one_that_diverges_or_dies_is_not_chosen(self):
        self.assertEqual(self.choose({64: 9, 128: None, 256: "died"}), ["it, 2 ranks", "it, 2 ranks, mini-batch 64"])
        self.assertEqual([one["outcome"] for one in self.entry["mini_batches"]], ["target_reached", "diverged", "died"])
        self.assertIn("no memory", self.comparison.died[0])

    def test_none_reaches_the_target(self):
        self.assertEqual(self.choose({64: None, 128: None, 256: None}), ["it, 2 ranks"])
        self.assertIn("none reached the target", self.comparison.skipped[0])

    def test_the_jobs_own_is_not_tried_again(self):
        self.choose({64: 9}, mini_batches=[32, 64])
        self.assertEqual([one["mini_batch"] for one in self.entry["mini_batches"]], [64])

    def test_in_quick_mode_the_two_fastest_compete_with_the_jobs_mini_batch(self):
        self.assertEqual(self.choose({}, quick=True, model="lenet"), ["it, 2 ranks", "it, 2 threads"])
        self.assertEqual(self.entry["mini_batches"], [])

    def test_none_is_tried_without_a_target_or_with_a_named_arrangement(self):
        for arguments in (
            {"targets": ()},
            {"arrangement": "2 ranks"},
            {"mini_batches": []},
        ):
            with self.subTest(arguments):
                self.assertEqual(self.choose({}, **arguments), ["it, 2 ranks"])
                self.assertEqual(self.entry["mini_batches"], [])


class Frameworks(unittest.TestCase):
    def competing(self, model, modules=("torch", "tensorflow", "jax"), **arguments):
        """Returns the frameworks that compete, and what is skipped."""
        usual = {"device": "cpu", "data_root": "data", "rate_rule": "LINEAR", "peers": "peers"}
        comparison = Comparison(pathlib.Path(), **(usual | arguments))
        comparison.python = "python"
        choosing = Choosing(comparison, model, {})
        choosing.of = lambda peer: [(peer.name, pathlib.Path(peer.basic_command[1]).name)]
        with mock.patch.object(machine, "has_module", lambda _, module: module in modules):
            return choosing.contenders(), comparison.skipped

    def test_all_that_are_there_and_know_the_model_compete(self):
        pytorch, tensorflow = ("PyTorch", "pytorch_peer.py"), ("TensorFlow", "tensorflow_peer.py")
        jax = ("JAX", "jax_peer.py")
        self.assertEqual(self.competing("lenet"), ([pytorch, tensorflow, jax], []))
        self.assertEqual(self.competing("resnet20"), ([pytorch, jax], []))
        self.assertEqual(self.competing("resnet32")[0], [pytorch, tensorflow, jax])
        found, skipped = self.competing("lenet", modules=("torch", "tensorflow"))
        self.assertEqual((found, skipped), ([pytorch, tensorflow], ["lenet: 'jax' is not in 'peers'"]))
        for name, *_ in (pytorch, tensorflow, jax):
            self.assertTrue((ROOT / "bench" / "peers" / f"{name.lower()}_peer.py").exists())

    def test_only_pytorch_competes_in_quick_mode_with_its_arrangement_or_on_a_gpu(self):
        for arguments, reason in (
            ({"quick": True}, "not in quick mode"),
            ({"arrangement": "2 ranks"}, "--arrangement is PyTorch's"),
            ({"device": "cuda"}, "on CPUs only"),
        ):
            found, skipped = self.competing("lenet", **arguments)
            self.assertEqual([name for name, _ in found], ["PyTorch"])
            self.assertEqual(skipped, [f"lenet: {name}: {reason}" for name in ("TensorFlow", "JAX")])


if __name__ == "__main__":
    unittest.main()
