"""Runs bench/compare.sh like a user, with Arbalest and without peers."""

import json
import os
import pathlib
import signal
import subprocess
import tempfile
import time
import unittest

from compare import fastest_first, free_places
from comparison import machine
from peers import huge_pages
from tiny_data import ROOT, write_mnist


class Compare(unittest.TestCase):
    def setUp(self):
        folder = tempfile.TemporaryDirectory()
        self.addCleanup(folder.cleanup)
        self.folder = pathlib.Path(folder.name)
        write_mnist(self.folder / "data", train=640, test=200)

    def command(self, *words):
        command = [str(ROOT / "bench" / "compare.sh"), "--program", os.environ["ARBALEST_PROGRAM"]]
        command += ["--output", str(self.folder / "out"), "--data-root", str(self.folder / "data")]
        return [*command, "--peers", str(self.folder / "absent"), "--model", "lenet", *words]

    def compare(self, *words, exit_code=0):
        done = subprocess.run(self.command(*words), capture_output=True, text=True, check=False)
        self.assertEqual(done.returncode, exit_code, done.stderr)
        return done

    def result(self):
        (page,) = (self.folder / "out").glob("*.md")
        return json.loads((self.folder / "out" / "compare.json").read_text()), page.read_text()

    def test_without_peers_arbalest_is_measured_and_the_rest_said_to_be_skipped(self):
        words = (
            "--turns",
            "2",
            "--seconds",
            "0.2",
            "--seeds",
            "1,2",
            "--target",
            "0.9",
            "--set",
            "learners.per_device.fixed=1",
            "--set",
            "training.precision=FP32",
        )
        done = self.compare(*words)
        self.assertIn("skipped: lenet: the peers", done.stderr)
        result, page = self.result()
        (side,) = result["models"][0]["sides"]
        self.assertEqual((len(side["rates"]), len(side["cores"])), (2, 2))
        self.assertEqual([run["seed"] for run in side["runs"]], [1, 2])
        self.assertEqual(result["died"], [])
        self.assertEqual((side["got"]["division"], side["got"]["precision"]), ("1 learner", "FP32"))
        self.assertIn("sma {", side["got"]["synchronization"])
        if huge_pages.system_mode() != "never":
            self.assertGreater(side["got"]["huge_page_bytes"], 0)
        parts = ("Time to 90 % test accuracy", "1 learner; sma {", "MiB in huge pages", "the peers", "devices=cpu")
        for part in (*parts, "bench configs/lenet-mnist.txtpb", result["commit"]):
            self.assertIn(part, page)
        self.assertNotIn(str(self.folder), page)

        before = (self.folder / "out" / "compare.json").read_text()
        self.assertIn("is there already and is not overwritten", self.compare(exit_code=2).stderr)
        self.assertEqual((self.folder / "out" / "compare.json").read_text(), before)

    def test_of_the_precisions_that_the_cpu_has_the_fastest_goes_on(self):
        self.compare("--turns", "1", "--seconds", "0.2", "--seeds", "1", "--target", "0.5")
        result, page = self.result()
        sides = result["models"][0]["sides"]
        precisions = machine.precisions(os.environ["ARBALEST_PROGRAM"])
        if len(precisions) == 1:
            self.assertEqual([side["name"] for side in sides], ["Arbalest"])
        else:
            self.assertEqual({side["name"] for side in sides}, {f"Arbalest, {one}" for one in precisions})
            self.assertIn(f"{sides[0]['name']} goes on", page)
        self.assertEqual(max(side["rates"] for side in sides), sides[0]["rates"])
        self.assertEqual([len(side["runs"]) for side in sides], [1] + [0] * (len(sides) - 1))

    def test_the_fastest_of_ours_comes_first_and_the_rest_last(self):
        def pair(name, rates, is_ours=True):
            return name, {"is_ours": is_ours, "rates": rates}

        slow, fast, dead, peer = pair("s", [9, 1, 1]), pair("f", [2, 3]), pair("d", []), pair("p", [99], False)
        self.assertEqual(fastest_first([slow, fast, dead, peer]), [fast, peer, slow, dead])

    def test_epoch_by_epoch_all_epochs_are_trained(self):
        words = ("--turns", "1", "--seconds", "0.2", "--seeds", "1,2", "--by-epoch", "--max-epochs", "3")
        self.compare(*words, "--set", "training.precision=FP32", "--set", "learning_rate.base=1e-4")
        result, page = self.result()
        (side,) = result["models"][0]["sides"]
        self.assertEqual([[row["epoch"] for row in run["curves"]["model"]] for run in side["runs"]], [[1, 2, 3]] * 2)
        self.assertIn("Test accuracy in % after each epoch, seeds 1, 2", page)
        self.assertNotIn("Time to", page)

    def test_a_target_that_arbalest_does_not_reach(self):
        words = ("--turns", "1", "--seconds", "0.2", "--seeds", "1", "--target", "1", "--max-epochs", "1")
        self.compare(*words, "--set", "learning_rate.base=1e-6", exit_code=9)
        self.assertIn("not reached", self.result()[1])

    def test_a_run_that_dies_is_counted_and_the_exit_code_says_so(self):
        done = self.compare("--speed-only", "--turns", "1", "--set", "training.batch_size=100000", exit_code=1)
        self.assertIn("died: lenet: a turn of Arbalest", done.stderr)
        result, page = self.result()
        self.assertTrue(result["died"])
        self.assertIn(f"Runs that died: {len(result['died'])}.", page)

    def test_bad_usage(self):
        for words, complaint in (
            (("--seeds", "5..1"), "names no seeds"),
            (("--seeds", ""), "names no seeds"),
            (("--target", "1.5"), "not in (0, 1]"),
            (("--turns", "0"), "below 1"),
            (("--mini-batches", "64,x"), "names no mini-batches"),
            (("--mini-batches", "64,64"), "names no mini-batches"),
            (("--by-epoch", "--target", "0.9"), "--by-epoch trains to no target"),
            (("--seeds", "1,2,1"), "names a seed twice"),
            (("--program", "absent"), "cannot be run: No such file"),
            (("--program", "/bin/false"), "ended with exit code 1"),
            (("--program", "/bin/true"), "does not say what Arbalest says"),
            (("--output", "/proc/none"), "'/proc/none' cannot be made"),
        ):
            with self.subTest(words):
                self.assertIn(complaint, self.compare(*words, exit_code=2).stderr)
                self.assertFalse((self.folder / "out").exists())

    def test_stopped_it_ends_what_trains_and_writes_a_page_of_what_it_has(self):
        running = subprocess.Popen(
            self.command("--speed-only", "--seconds", "600"), stderr=subprocess.DEVNULL, start_new_session=True
        )
        self.addCleanup(running.wait)
        while running.poll() is None and not list((self.folder / "out").glob("lenet/**/arbalest-1/metrics.jsonl")):
            time.sleep(0.01)
        running.send_signal(signal.SIGTERM)
        self.assertEqual(running.wait(), 143)
        self.assertIn("Stopped before its end", self.result()[1])
        with self.assertRaises(ProcessLookupError):  # no process of its group is left
            for _ in range(1000):
                os.killpg(running.pid, 0)
                time.sleep(0.01)

    def test_without_an_output_the_first_free_name_is_taken(self):
        def names():
            return tuple(path.name for path in free_places(self.folder, "day"))

        self.assertEqual(names(), ("compare-day", "day.md"))
        (self.folder / "bench" / "results").mkdir(parents=True)
        (self.folder / "bench" / "results" / "day.md").symlink_to("nowhere")
        (self.folder / "runs" / "compare-day-2").mkdir(parents=True)
        self.assertEqual(names(), ("compare-day-3", "day-3.md"))

    def test_data_that_are_missing(self):
        self.assertIn("skipped: lenet", self.compare("--data-root", str(self.folder), exit_code=4).stderr)


if __name__ == "__main__":
    unittest.main()
