"""Asynchronous SGD over the processes of mpirun: it trains, keeps its bounds, ends with a killed process, and goes on."""

import os
import random

import kill_runs
import processes
from process_case import PROGRAM, ProcessCase, main, settings, settings_of

JOBS = {
    "digits": """
model { zoo { mlp { hidden: [32] } } }
data { digits {} }
training { batch_size: 32 max_epochs: 3 }
optimizer { sgd { momentum: 0.5 } }
learning_rate { base: 0.02 with_learners: KEEP }
synchronization { async_sgd { staleness: 2 } }
""",
    "lenet": """
model { zoo { lenet {} } }
data { npy { directory: "./images28" classes: 10 channels: 1 height: 28 width: 28 } }
training { batch_size: 8 max_epochs: 2 }
optimizer { sgd { momentum: 0.5 } }
learning_rate { base: 0.003 with_learners: KEEP }
synchronization { async_sgd { staleness: 2 push_every: 2 warm_start_epochs: 0.5 } }
checkpoint { every_batches: 40 }
""",
}


class AsyncOverProcesses(ProcessCase):
    @classmethod
    def setUpClass(cls):
        super().setUpClass()
        kill_runs.write_images(cls.root / "images28", 28, 1, 640, random.Random(1))
        for name, text in JOBS.items():
            cls.write_job(text, f"{name}.txtpb")

    def start(self, count, job, output, *arguments, wrappers=None):
        words = [f"{job}.txtpb", "--quiet", "--output", output, *arguments]
        return processes.launch(PROGRAM, count, words, self.root, wrappers=wrappers)

    def train(self, count, job, output, *arguments):
        code, errors = processes.end(self.start(count, job, output, *arguments))
        self.assertEqual(code, 0, errors)
        return self.summary(output)

    def check_staleness(self, output, learners, bound, pushes):
        histograms = [row["staleness"] for row in self.rows(output, "epoch") if "staleness" in row]
        self.assertTrue(histograms)
        for histogram in histograms:
            # An epoch ends with the first round of all learners that has its last mini-batch.
            self.assertAlmostEqual(sum(histogram.values()), pushes, delta=learners)
            if bound is not None:
                self.assertLessEqual(max(map(int, histogram)), (learners - 1) * (2 * bound + 1))
        whole = self.summary(output)["staleness"]
        self.assertEqual(sum(whole.values()), sum(sum(histogram.values()) for histogram in histograms))

    def test_digits_are_learned_in_two_processes(self):
        for learners in (1, 2):
            output = f"digits-{learners}"
            summary = self.train(2, "digits", output, *settings(learners))
            self.assertEqual(summary["learners"], 2 * learners)
            self.assertGreater(summary["test_accuracy"], 0.9)
            self.check_staleness(output, 2 * learners, bound=2, pushes=20_000 // 32)
            self.assertIn(f"test_accuracy {summary['test_accuracy']}\n", self.alone("evaluate", output))

    def test_a_bound_of_0_has_the_bytes_of_s_sgd_in_one_process(self):
        models = set()
        bulk = "async_sgd{staleness: 0}"
        for count, learners, scheme in ((1, 4, "s_sgd{}"), (1, 4, bulk), (2, 2, bulk), (2, 2, "s_sgd{}")):
            output = f"bytes-{count}-{scheme[0]}"
            words = settings(learners, f"synchronization={scheme}")
            if count == 1:
                self.alone("train", "lenet.txtpb", "--quiet", "--output", output, *words)
            else:
                self.train(count, "lenet", output, *words)
            models.add(self.summary(output)["model_sha256"])
        self.assertEqual(len(models), 1)

    def test_a_stopped_run_goes_on_in_another_number_of_processes(self):
        run = settings(2, "training.max_epochs=1000")
        process = self.start(2, "lenet", "stopped", *run)
        self.stop_rank(process, "stopped", 1)
        before = self.summary("stopped")
        self.assertEqual(before["status"], "stopped")
        epochs = before["epochs"] + 2
        for count, learners in ((4, 1), (2, 2)):
            words = settings(learners, f"training.max_epochs={epochs}")
            after = self.train(count, "lenet", "stopped", *words, "--resume=auto")
            self.assertEqual(after["status"], "completed")
            self.assertEqual(after["epochs"], epochs)
            self.assertEqual(after["learners"], 4)
            self.assertTrue(self.rows("stopped", "resume"))
            epochs += 1

    def test_the_others_end_when_a_process_is_killed_and_the_run_goes_on(self):
        for bound in ("", "staleness: 1"):
            output = f"killed{len(bound)}"
            words = settings(1, "processes.peer_timeout_seconds=3", f"synchronization=async_sgd{{{bound}}}")
            endless = settings_of("training.max_epochs=1000")
            process = self.start(2, "lenet", output, *words, *endless, wrappers=self.hidden(1))
            self.wait_for(process, output, "checkpoint")
            self.kill_hidden(process, 1)
            saved = self.rows(output, "checkpoint")[-1]
            epochs = int(saved["epoch"]) + 3
            after = self.train(2, "lenet", output, *words, "--set", f"training.max_epochs={epochs}", "--resume=auto")
            self.assertEqual(after["status"], "completed")
            self.assertEqual(after["epochs"], epochs)

    def test_a_run_in_one_process_goes_on(self):
        cores = sorted(os.sched_getaffinity(0))
        words = settings(2, f'devices=["cpu:{cores[0]}"]')
        for epochs in (2, 4):
            self.alone("train", "lenet.txtpb", "--quiet", "--output", "one", *words,
                       *settings_of(f"training.max_epochs={epochs}"), "--resume=auto")
            summary = self.summary("one")
            self.assertEqual(summary["epochs"], epochs)
            # 80 mini-batches an epoch: the first 40 are the warm start, and two make a push.
            self.assertEqual(summary["mini_batches"], 80 * epochs)
            self.assertEqual(sum(summary["staleness"].values()), (80 * epochs - 40) // 2)
        self.assertEqual(len(self.rows("one", "resume")), 1)
        self.assertEqual([row["epoch"] for row in self.rows("one", "epoch")], [1, 2, 3, 4])

    def test_a_divergence_ends_all(self):
        process = self.start(2, "lenet", "diverged", *settings(2, "learning_rate.base=1000"))
        code, errors = processes.end(process)
        self.assertEqual(code, 7, errors)
        self.assertEqual(self.summary("diverged")["status"], "diverged")


if __name__ == "__main__":
    main()
