"""Delayed block proximal gradient over the processes of mpirun: it reaches the minimum, and all processes end together."""

import json
import random

import processes
from process_case import PROGRAM, ProcessCase, main, settings

FEATURES = 40
JOB = f"""
model {{ sparse_logistic {{}} }}
data {{ libsvm {{ directory: "." features: {FEATURES} }} }}
synchronization {{ delayed_proximal {{ l1: 0.004 blocks: 8 tolerance: 1e-7 }} }}
devices: "cpu"
"""
HOGWILD = JOB.replace("delayed_proximal { l1: 0.004 blocks: 8 tolerance: 1e-7 }", "hogwild {}")
ENDLESS = ("training.max_epochs=1000000", "synchronization.delayed_proximal.tolerance=0")


def rows(numbers, count):
    text = []
    for _ in range(count):
        features = sorted(numbers.sample(range(1, FEATURES + 1), 6))
        output = sum(1 if feature <= 4 else -1 for feature in features if feature <= 8)
        label = 1 if numbers.random() < 1 / (1 + 2.718281828 ** (-2 * output)) else -1
        text.append(f"{label:+d} " + " ".join(f"{feature}:1" for feature in features) + "\n")
    return "".join(text)


class SparseOverProcesses(ProcessCase):
    @classmethod
    def setUpClass(cls):
        super().setUpClass()
        numbers = random.Random(1)
        (cls.root / "train.libsvm").write_text(rows(numbers, 600), encoding="ascii")
        (cls.root / "test.libsvm").write_text(rows(numbers, 200), encoding="ascii")
        (cls.root / "bad").mkdir()
        (cls.root / "bad/train.libsvm").write_text("+1 1:1\n-1 3:1 2:1\n", encoding="ascii")
        (cls.root / "bad/test.libsvm").write_text("+1 1:1\n", encoding="ascii")
        cls.write_job(JOB)
        cls.write_job(HOGWILD + "learning_rate { base: 0.1 }\n", "hogwild.txtpb")

    def words(self, output, *arguments, job="job.txtpb"):
        return [job, "--quiet", "--data-root", ".", "--output", output, *arguments]

    def start(self, count, output, *arguments, wrappers=None, **options):
        return processes.launch(PROGRAM, count, self.words(output, *arguments, **options), self.root, wrappers=wrappers)

    def test_the_objective_is_that_of_one_process(self):
        for delay in (0, 2, 4):
            chosen = f"synchronization.delayed_proximal.max_delay={delay}"
            self.alone("train", *self.words(f"one-{delay}", *settings(1, chosen)))
            least = self.summary(f"one-{delay}")["objective"]
            for count, learners in ((2, 1), (2, 2), (3, 1)):
                output = f"several-{delay}-{count}-{learners}"
                code, errors = processes.end(self.start(count, output, *settings(learners, chosen)))
                self.assertEqual(code, 0, errors)
                summary = self.summary(output)
                self.assertEqual(summary["status"], "completed")
                self.assertEqual(summary["learners"], count * learners)
                self.assertAlmostEqual(summary["objective"] / least, 1, delta=1e-6 if delay == 0 else 1e-4)
                evaluated = json.loads(self.alone("evaluate", output, "--json"))
                self.assertEqual(evaluated["test_accuracy"], summary["test_accuracy"])
                self.assertEqual(evaluated["test_loss"], summary["test_loss"])

    def test_the_bytes_are_those_of_one_process_with_all_learners(self):
        chosen = "synchronization.delayed_proximal.max_delay=2"
        for count, learners in ((3, 1), (2, 2)):
            output = f"bytes-{count}-{learners}"
            self.alone("train", *self.words(output + "-alone", *settings(count * learners, chosen)))
            code, errors = processes.end(self.start(count, output, *settings(learners, chosen)))
            self.assertEqual(code, 0, errors)
            self.assertEqual(self.summary(output)["model_sha256"], self.summary(output + "-alone")["model_sha256"])

    def test_a_signal_to_one_rank_stops_all(self):
        process = self.start(2, "stopped", *settings(1, *ENDLESS))
        self.stop_rank(process, "stopped", 1)
        summary = self.summary("stopped")
        self.assertEqual(summary["status"], "stopped")
        self.assertIn("stopped by SIGTERM", summary["message"])
        evaluated = json.loads(self.alone("evaluate", "stopped", "--json"))
        self.assertEqual(evaluated["test_loss"], summary["test_loss"])

    def test_the_others_end_when_a_process_is_killed(self):
        words = settings(1, "processes.peer_timeout_seconds=3", *ENDLESS)
        process = self.start(2, "killed", *words, wrappers=self.hidden(1))
        self.wait_for(process, "killed", "epoch")
        errors = self.kill_hidden(process, 1)
        summary = self.summary("killed")
        self.assertEqual(summary["status"], "failed")
        # Rank 0 has the model of the last epoch.
        self.assertRegex(summary["message"], r"rank 1 on host .* \(the model of epoch [1-9][0-9]* is saved\)$")
        self.assertIn("is saved)", errors)
        evaluated = json.loads(self.alone("evaluate", "killed", "--json"))
        self.assertEqual(evaluated["test_loss"], summary["test_loss"])

    def refused(self, code, part, *arguments, **options):
        returned, errors = processes.end(self.start(2, "refused", *settings(1), *arguments, **options))
        self.assertEqual(returned, code, errors)
        self.assertEqual(errors.count(part), 1, errors)
        self.assertFalse((self.root / "refused/model.safetensors").exists())

    def test_a_bad_row_is_told_once(self):
        bad = ["--set", 'data.libsvm.directory="./bad"']
        self.refused(4, "train.libsvm:2: feature number 2 does not ascend from 3", *bad)

    def test_hogwild_and_a_trace_are_refused(self):
        told = "hogwild.txtpb:4:19: error: synchronization.hogwild: the learners of hogwild share the memory of one process"
        self.refused(3, told, job="hogwild.txtpb")
        self.refused(2, "--trace records task streams", "--trace", "trace.json")

    def test_a_dry_run(self):
        words = ["job.txtpb", "--data-root", ".", "--dry-run"]
        process = processes.launch(PROGRAM, 2, words, self.root, stdout=processes.subprocess.PIPE)
        out, errors = process.communicate(timeout=processes.LIMIT)
        self.assertEqual(process.returncode, 0, errors)
        self.assertEqual(out.count("one epoch trained"), 1, out)


if __name__ == "__main__":
    main()
