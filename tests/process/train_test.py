"""`arbalest train` in several processes: the bytes of one process, resumption with other numbers, and wrong use."""

import os
import random
import shutil
import signal

import kill_runs
import processes
from process_case import PROGRAM, ProcessCase, main, settings

JOBS = {
    "lenet": """
model { zoo { lenet {} } }
data { npy { directory: "./images28" classes: 10 channels: 1 height: 28 width: 28 } }
training { batch_size: 8 max_epochs: 2 moving_average_epochs: 0.3 }
optimizer { sgd { momentum: 0.9 } }
learning_rate { base: 0.003 multistep { drop { epoch: 1.2 factor: 0.1 } } }
synchronization { sma {} switch { at_epoch: 1.4 local_sgd { period: 5 } } }
checkpoint { every_batches: 60 }
""",
    "resnet": """
model { zoo { resnet_cifar { depth: 20 } } }
data { npy { directory: "./images16" classes: 10 channels: 3 height: 16 width: 16 } augmentation { padding: 2 } }
training { batch_size: 8 max_epochs: 1 batch_norm_examples: 64 }
optimizer { sgd { momentum: 0.9 } }
learning_rate { base: 0.01 one_cycle {} }
synchronization { s_sgd {} }
""",
    "ratings": """
model { zoo { matrix_factorization { width: 4 mean: 3.0 } } }
data { ratings { directory: "./ratings" sizes: [40, 30] } }
training { batch_size: 16 max_epochs: 2 }
optimizer { adamw {} }
learning_rate { base: 0.01 }
synchronization { diloco { period: 9 } }
""",
    "long": """
model { zoo { lenet {} } }
data { npy { directory: "./images28" classes: 10 channels: 1 height: 28 width: 28 } }
training { batch_size: 8 max_epochs: 1000 }
optimizer { sgd { momentum: 0.9 } }
learning_rate { base: 0.003 }
""",
}


class TrainOverProcesses(ProcessCase):
    @classmethod
    def setUpClass(cls):
        super().setUpClass()
        numbers = random.Random(1)
        kill_runs.write_images(cls.root / "images28", 28, 1, 640, numbers)
        kill_runs.write_images(cls.root / "images16", 16, 3, 192, numbers)
        kill_runs.write_ratings(cls.root / "ratings", numbers, rows=1000)
        for name, text in JOBS.items():
            cls.write_job(text, f"{name}.txtpb")

    def train(self, count, job, output, *arguments, variables=None):
        words = [f"{job}.txtpb", "--quiet", "--output", output, *arguments]
        if count == 1:
            words = [str(PROGRAM), "train", *words]
            done = processes.subprocess.run(words, cwd=self.root, capture_output=True, text=True, check=False)
            return done.returncode, done.stderr
        return processes.end(processes.launch(PROGRAM, count, words, self.root, variables))

    def refused(self, code, *parts, count=2, job="lenet", output="refused", arguments=(), variables=None):
        """The run ends with this code, and one process says why, in words with these parts."""
        returned, errors = self.train(count, job, output, *arguments, variables=variables)
        self.assertEqual(returned, code, errors)
        for part in parts:
            self.assertEqual(errors.count(part), 1, errors)
        self.assertFalse((self.root / "refused").exists())

    def test_the_bytes_are_those_of_one_process(self):
        for job in ("lenet", "resnet", "ratings"):
            outcomes = []
            for count, learners in ((1, 4), (2, 2), (4, 1)):
                output = f"{job}-{count}"
                code, errors = self.train(count, job, output, *settings(learners))
                self.assertEqual(code, 0, errors)
                summary = self.summary(output)
                self.assertEqual(summary["learners"], 4)
                outcomes.append([summary[name] for name in ("model_sha256", "test_loss", "mini_batches", "examples")])
            self.assertEqual(outcomes[0], outcomes[1])
            self.assertEqual(outcomes[0], outcomes[2])

    def test_a_signal_to_one_rank_stops_all_and_the_run_goes_on_in_more_processes(self):
        run = settings(2, "training.max_epochs=100")
        process = processes.launch(PROGRAM, 2, ["lenet.txtpb", "--quiet", "--output", "stopped", *run], self.root)
        self.stop_rank(process, "stopped", 1)
        self.assertEqual(self.summary("stopped")["status"], "stopped")
        epochs = self.summary("stopped")["epochs"] + 2  # a busy machine stops it late
        code, errors = self.train(
            4, "lenet", "stopped", *settings(1, f"training.max_epochs={epochs}"), "--resume=auto"
        )
        self.assertEqual(code, 0, errors)
        self.assertNotIn("was saved with", errors)  # the same program and processor
        code, errors = self.train(1, "lenet", "whole", *settings(4, f"training.max_epochs={epochs}"))
        self.assertEqual(code, 0, errors)
        self.assertEqual(self.summary("stopped")["model_sha256"], self.summary("whole")["model_sha256"])
        more = f"training.max_epochs={epochs + 1}"
        code, errors = self.train(1, "lenet", "stopped", *settings(4, more), "--resume=auto")
        self.assertEqual(code, 0, errors)
        code, errors = self.train(2, "lenet", "whole", *settings(2, more), "--resume=auto")
        self.assertEqual(code, 0, errors)
        self.assertEqual(self.summary("stopped")["model_sha256"], self.summary("whole")["model_sha256"])

    def test_a_schedule_goes_on_where_it_changes_the_learners(self):
        def words(first, then, epochs):
            schedule = f"learners.per_device.schedule={{step {{learners: {first}}} step {{at_batch: 80 learners: {then}}}}}"
            return ["--set", schedule, "--set", f"training.max_epochs={epochs}"]

        code, errors = self.train(1, "long", "scheduled", *words(2, 4, 3))
        self.assertEqual(code, 0, errors)
        for epochs in (1, 3):  # the first run ends at mini-batch 80
            code, errors = self.train(2, "long", "grown", *words(1, 2, epochs), "--resume=auto")
            self.assertEqual(code, 0, errors)
        self.assertEqual(self.summary("grown")["learners"], 4)
        self.assertEqual(self.summary("grown")["model_sha256"], self.summary("scheduled")["model_sha256"])

    def test_a_tuned_run_changes_its_learners_and_its_record_replays_in_one_process(self):
        cores = sorted(os.sched_getaffinity(0))
        if len(cores) < 2:
            self.skipTest("it takes two cores")
        devices = ["--set", f'devices=["cpu:{cores[0]}", "cpu:{cores[1]}"]']
        tuned = ["--set", "learners.per_device.auto={max: 2}", "--set", "training.max_epochs=100"]
        code, errors = self.train(2, "long", "tuned", *devices, *tuned, "--no-cache")
        self.assertEqual(code, 0, errors)
        rows = self.rows("tuned", "resize")
        self.assertTrue(any(row["learners_per_device"] == [2, 2] for row in rows), rows)
        self.assertTrue(all(row["reason"] for row in rows), rows)
        summary = self.summary("tuned")
        last = rows[-1]["learners_per_device"]
        self.assertEqual(summary["learners_per_device"], last[0] if len(set(last)) == 1 else last)
        self.assertEqual(summary["learners"], sum(last))
        shutil.copy(self.root / "tuned/replay.txtpb", self.root / "replay.txtpb")
        code, errors = self.train(1, "replay", "replayed")
        self.assertEqual(code, 0, errors)
        self.assertEqual(self.summary("replayed")["model_sha256"], summary["model_sha256"])

    def test_the_job_of_a_run_is_the_whole_job(self):
        code, errors = self.train(2, "ratings", "whole-job", *settings(1))
        self.assertEqual(code, 0, errors)
        self.assertIn('devices: "cpu"\n', (self.root / "whole-job/job.txtpb").read_text(encoding="utf-8"))

    def test_a_rank_that_is_stopped_is_named_with_what_it_did(self):
        run = settings(1, "processes.peer_timeout_seconds=3")
        process = processes.launch(PROGRAM, 3, ["long.txtpb", "--quiet", "--output", "silent", *run], self.root)
        self.wait_for(process, "silent", "epoch")
        os.kill(processes.ranks_of(process)[2], signal.SIGSTOP)
        code, errors = processes.end(process)
        self.assertEqual(code, 8, errors)
        self.assertRegex(errors, r"rank [01] on host .*: rank 2 on host .* is dead, stopped or cut off")
        self.assertRegex(errors, r"Its last heartbeat came from round [1-9][0-9]* \((training|evaluation|saving)\)")

    def test_a_divergence_of_any_rank_ends_or_rolls_back_all(self):
        code, errors = self.train(2, "lenet", "diverged", *settings(1, "learning_rate.base=1000"))
        self.assertEqual(code, 7, errors)
        self.assertEqual(self.summary("diverged")["status"], "diverged")
        run = settings(1, "learning_rate.base=1000", "training.on_divergence=ROLL_BACK")
        code, errors = self.train(2, "lenet", "rolled", *run)
        self.assertEqual(code, 7, errors)
        self.assertIn("the run has gone back 3 times", errors)

    def test_the_sum_of_the_library_trains_too(self):
        code, errors = self.train(2, "lenet", "library", *settings(1, "processes.all_reduce=LIBRARY"))
        self.assertEqual(code, 0, errors)
        self.assertEqual(self.summary("library")["status"], "completed")

    def test_wrong_jobs_and_arguments_are_told_once(self):
        self.refused(3, "missing.txtpb: the job file cannot be opened", job="missing")
        self.refused(2, "batch_size must be at least 1", arguments=["--set", "training.batch_size=0"])
        self.refused(2, "cannot create the output directory '/proc/none'", output="/proc/none")
        core = min(os.sched_getaffinity(0))
        self.refused(2, "cannot share the device of the job", arguments=["--set", f'devices=["cpu:{core}"]'])
        pull = settings(3, "synchronization.sma.alpha=0.5")
        self.refused(3, "with the learners of all 2 processes: synchronization.sma", job="long", arguments=pull)
        timeout = ["--set", "processes.peer_timeout_seconds=1"]
        self.refused(2, "peer_timeout_seconds must be in [2, 86400], not 1", arguments=timeout)

    def test_ranks_with_other_data_are_named(self):
        other = self.root / "other"
        other.mkdir()
        kill_runs.write_ratings(other / "ratings", random.Random(2), rows=1000)
        (self.root / "root").mkdir()
        kill_runs.write_ratings(self.root / "root/ratings", random.Random(3), rows=1000)
        # The same training files, and the test files of the other data.
        shutil.copytree(self.root / "root", self.root / "other-test")
        for path in (other / "ratings").glob("test_*"):
            shutil.copy(path, self.root / "other-test/ratings" / path.name)
        text = JOBS["ratings"].replace("./ratings", "ratings")
        (self.root / "rooted.txtpb").write_text(text, encoding="utf-8")
        for root, code, part in (
            ("nothing", 4, "rank 1 on host"),
            ("other", 4, "has other training, validation or test data than rank 0"),
            ("other-test", 4, "has other training, validation or test data than rank 0"),
        ):
            variables = {0: {"ARBALEST_DATA": self.root / "root"}, 1: {"ARBALEST_DATA": self.root / root}}
            self.refused(code, part, job="rooted", variables=variables)

    def test_other_commands_run_in_one_process(self):
        command = ["mpirun", "--oversubscribe", "-np", "2", str(PROGRAM), "validate", "lenet.txtpb"]
        done = processes.subprocess.run(
            command, env=processes.environment(), cwd=self.root, capture_output=True, text=True, check=False
        )
        self.assertEqual(done.returncode, 2)
        self.assertEqual(done.stderr.count("'arbalest validate' runs in one process"), 1)
        self.assertEqual(done.stdout, "")

    def test_a_dry_run_is_told_once(self):
        process = processes.launch(
            PROGRAM, 2, ["lenet.txtpb", "--dry-run", *settings(1)], self.root, stdout=processes.subprocess.PIPE
        )
        text = process.communicate(timeout=processes.LIMIT)[0]
        self.assertEqual(process.returncode, 0)
        self.assertEqual(text.count("one round of 2 mini-batches"), 1)


if __name__ == "__main__":
    main()
