"""Tests contenders of a comparison, including ones that do not answer: bench/comparison/contenders.py."""

import pathlib
import sys
import tempfile
import unittest

from comparison import got
from comparison.contenders import Arbalest, OutOfTime, Peer, RunDied

READY = 'print("{}", flush=True)\n'
HANGS = "import time\ntime.sleep(1000)\n"
ANSWERS = """import os, sys
for line in sys.stdin:
  print(os.getpid(), file=sys.stderr)
  print("a warning")
  print('{"images_per_second": 7}', flush=True)
"""


def any_time():
    return None


def no_time():
    return 0.2


class Contenders(unittest.TestCase):
    def program(self, text):
        folder = tempfile.TemporaryDirectory()
        self.addCleanup(folder.cleanup)
        program = pathlib.Path(folder.name) / "program.py"
        program.write_text(f"#!{sys.executable}\n{text}")
        program.chmod(0o700)
        return program

    def peer(self, text):
        program = self.program(text)
        peer = Peer("a peer", [sys.executable, str(program)], program.parent / "logs")
        self.addCleanup(peer.stop)
        return peer

    def arbalest(self, text):
        program = self.program(text)
        return Arbalest(program, "job", [], "cpu", "data", program.parent)

    def test_arbalest_runs_on_the_device_of_the_peers_unless_its_settings_name_one(self):
        def command(*settings):
            return Arbalest("arbalest", "job", settings, "cuda:0", "data", pathlib.Path("none")).of_turns()

        self.assertIn("devices=cuda:0", command("training.seed=2"))
        self.assertNotIn("devices=cuda:0", command("devices=cuda:1"))

    def test_arbalest_in_another_precision_has_a_name_and_a_folder_of_its_own(self):
        one = Arbalest("arbalest", "job", [], "cpu", "data", pathlib.Path("out"), "BF16")
        self.assertIn("training.precision=BF16", one.of_turns())
        self.assertIn("training.precision=BF16", one.training(0.9, 1, None))
        self.assertEqual((one.name, one.folder), ("Arbalest, BF16", pathlib.Path("out/bf16")))

    def test_a_peer_is_told_its_mini_batch_and_its_goal(self):
        peer = Peer("it", ["python", "peer.py", "--model", "lenet"], pathlib.Path("logs"))
        self.assertEqual(peer.of_turns(), ["python", "peer.py", "turns", "--model", "lenet"])
        larger = peer.arranged("2 ranks", mini_batch=128)
        self.assertEqual(larger.name, "it, 2 ranks, mini-batch 128")
        chosen = ["python", "peer.py", "train", "--model", "lenet", "--arrangement", "2 ranks", "--mini-batch", "128"]
        self.assertEqual(larger.training(0.9, 3, None), [*chosen, "--target", "0.9", "--seed", "3"])
        self.assertEqual(larger.training(None, 3, 7), [*chosen, "--all-epochs", "--seed", "3", "--max-epochs", "7"])

    def test_every_turn_of_a_peer_is_a_process_of_its_own_which_warms_up(self):
        peer = self.peer(READY + ANSWERS)
        self.assertEqual([peer.turn(0.1, any_time), peer.turn(0.1, lambda: 60.0)], [7, 7])
        said = (peer.folder / "program.log").read_text().splitlines()
        self.assertEqual(len(set(said)), 2)  # the process of each turn
        self.assertEqual(len(said), 4)
        self.assertIsNone(peer.process)

    def test_a_peer_that_is_never_ready_is_ended_when_the_time_is_over(self):
        peer = self.peer(HANGS)
        self.assertRaises(OutOfTime, peer.turn, 0.1, no_time)
        self.assertIsNone(peer.process)

    def test_a_turn_without_an_answer_is_ended_when_the_time_is_over(self):
        peer = self.peer(READY + HANGS)
        self.assertRaises(OutOfTime, peer.turn, 0.1, no_time)
        self.assertIsNone(peer.process)

    def test_a_turn_of_ours_that_does_not_begin_is_ended_when_the_time_is_over(self):
        self.assertRaises(OutOfTime, self.arbalest(HANGS).turn, 0.1, no_time)

    def test_a_turn_of_ours_that_fails_has_died(self):
        with self.assertRaisesRegex(RunDied, "exit code 1: no such job"):
            self.arbalest("import sys\nsys.exit('no such job')").turn(60, any_time)

    def test_a_peer_that_ends_by_itself_has_died(self):
        peer = self.peer("import sys\nsys.exit('no such model')")
        with self.assertRaisesRegex(RunDied, "exit code 1: no such model"):
            peer.turn(0.1, lambda: 60.0)


JOB = """training { batch_size: 32 precision: BF16 } learning_rate { base: 0.02 with_learners: SQRT }
synchronization { s_sgd { bucket_mb: 4 } switch { at_epoch: 2 sma {} } }"""


class Got(unittest.TestCase):
    def test_what_ours_got_names_learners_synchronization_and_memory(self):
        said = got.text_of(got.ours(JOB, 2, 3 << 20))
        self.assertEqual(
            said,
            "2 learners; s_sgd { bucket_mb: 4 } switch { at_epoch: 2 sma {} }; BF16; 64 images a step; "
            "learning rate 0.02 (SQRT with learners); 3 MiB in huge pages",
        )
        self.assertIn("1 learner;", got.text_of(got.ours(JOB, 1, None)))
        self.assertIn("not counted", got.text_of(got.ours(JOB, 1, None)))

    def test_what_a_peer_got(self):
        peer = {"division": "2 ranks x 1 thread", "precision": "BF16", "memory_format": "channels last", "compiler": "XLA"}
        peer |= {"mini_batch": 128, "learning_rate": 0.08, "rise": "no warm-up", "huge_page_bytes": 0}
        said = "2 ranks x 1 thread; BF16; channels last; XLA; 128 images a step; learning rate 0.08 (no warm-up); "
        self.assertEqual(got.text_of(peer | {"asks_for_huge_pages": True}), said + "0 MiB in huge pages")
        self.assertIn("no huge pages", got.text_of(peer | {"asks_for_huge_pages": False}))
        self.assertEqual(got.text_of(None), "")


if __name__ == "__main__":
    unittest.main()
