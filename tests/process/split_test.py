"""Models that are split over the processes of mpirun: the bytes of one process, resumption, a killed process."""

import json
import os
import random

import kill_runs
import processes
from process_case import PROGRAM, ProcessCase, main, settings_of

LENET = """
model {
  layers { name: "conv1" input: "image" conv { filters: 6 kernel: 5 } }
  layers { name: "pool1" input: "conv1" max_pool { kernel: 2 stride: 2 } }
  layers { name: "conv2" input: "pool1" conv { filters: 8 kernel: 5 } }
  layers { name: "pool2" input: "conv2" max_pool { kernel: 2 stride: 2 } }
  layers { name: "dense1" input: "pool2" dense { units: 60 split: COLUMNS } }
  layers { name: "relu1" input: "dense1" relu {} }
  layers { name: "drop1" input: "relu1" dropout { ratio: 0.2 } }
  layers { name: "logits" input: "drop1" dense { units: 10 split: ROWS } }
  layers { name: "loss" input: "logits" input: "label" softmax_cross_entropy {} }
  layers { name: "accuracy" input: "logits" input: "label" accuracy {} }
}
data { npy { directory: "./images28" classes: 10 channels: 1 height: 28 width: 28 } }
training { batch_size: 8 max_epochs: 2 }
optimizer { sgd { momentum: 0.9 } }
learning_rate { base: 0.003 with_learners: KEEP }
synchronization { s_sgd {} }
learners { per_device { fixed: 1 } }
checkpoint { every_batches: 40 }
"""


class SplitOverProcesses(ProcessCase):
    @classmethod
    def setUpClass(cls):
        super().setUpClass()
        kill_runs.write_images(cls.root / "images28", 28, 1, 640, random.Random(1))
        cls.write_job(LENET)
        cls.cores = sorted(os.sched_getaffinity(0))

    def settings(self, *settings, devices=2):
        names = ", ".join(f'"cpu:{core}"' for core in self.cores[:devices])
        return settings_of(f"devices=[{names}]", *settings)

    def start(self, count, output, *arguments, wrappers=None):
        words = ["job.txtpb", "--quiet", "--output", output, *arguments]
        return processes.launch(PROGRAM, count, words, self.root, wrappers=wrappers)

    def train(self, count, output, *arguments):
        if count == 1:
            self.alone("train", "job.txtpb", "--quiet", "--output", output, *arguments)
        else:
            code, errors = processes.end(self.start(count, output, *arguments))
            self.assertEqual(code, 0, errors)
        return self.summary(output)

    def needs_two_cores(self):
        if len(self.cores) < 2:
            self.skipTest("needs two cores")

    def test_the_bytes_are_those_of_one_process(self):
        self.needs_two_cores()
        alone = self.train(1, "alone", *self.settings())
        over = self.train(2, "over", *self.settings())
        self.assertEqual(over["learners"], 2)
        for name in ("model_sha256", "test_loss", "test_accuracy", "mini_batches", "examples"):
            self.assertEqual(over[name], alone[name])
        # One device evaluates the whole model.
        evaluated = json.loads(self.alone("evaluate", "over", "--devices", "cpu", "--json"))
        self.assertAlmostEqual(evaluated["test_loss"], over["test_loss"], delta=1e-4 * over["test_loss"])

    def test_a_stopped_run_goes_on_in_another_number_of_processes(self):
        self.needs_two_cores()
        process = self.start(2, "stopped", *self.settings("training.max_epochs=1000"))
        self.stop_rank(process, "stopped", 1)
        epochs = self.summary("stopped")["epochs"] + 2
        self.train(1, "stopped", *self.settings(f"training.max_epochs={epochs}"), "--resume=auto")
        again = self.train(2, "stopped", *self.settings(f"training.max_epochs={epochs + 1}"), "--resume=auto")
        whole = self.train(2, "whole", *self.settings(f"training.max_epochs={epochs + 1}"))
        self.assertEqual(again["model_sha256"], whole["model_sha256"])
        self.assertEqual(len(self.rows("stopped", "resume")), 2)
        # One device has one learner, and the whole layers.
        alone = self.train(1, "stopped", *self.settings(f"training.max_epochs={epochs + 2}", devices=1), "--resume=auto")
        self.assertEqual(alone["status"], "completed")

    def test_the_others_end_when_a_process_is_killed_and_the_run_goes_on(self):
        self.needs_two_cores()
        words = self.settings("processes.peer_timeout_seconds=3", "training.max_epochs=1000")
        process = self.start(2, "killed", *words, wrappers=self.hidden(1))
        self.wait_for(process, "killed", "checkpoint")
        self.kill_hidden(process, 1)
        epochs = int(self.rows("killed", "checkpoint")[-1]["epoch"]) + 2
        after = self.train(2, "killed", *self.settings(f"training.max_epochs={epochs}"), "--resume=auto")
        self.assertEqual(after["status"], "completed")
        self.assertEqual(after["epochs"], epochs)

    def test_bad_launches_are_refused(self):
        self.needs_two_cores()
        two = self.settings()
        for count, words, expected, part in (
            (3, two, 2, "cannot share the devices of the job"),
            (3, settings_of("devices=cpu", "model.layers[4].dense.units=50"), 2, "cannot divide 50 units equally over 3 devices"),
            (2, [*two, *settings_of("synchronization=sma{}")], 2, "split: COLUMNS excludes synchronization.sma"),
            (2, [*two, *settings_of("learners.per_device.fixed=2")], 2, "split: COLUMNS excludes learners.per_device of 2"),
        ):
            code, errors = processes.end(self.start(count, "refused", *words))
            self.assertEqual(code, expected, errors)
            self.assertEqual(errors.count(part), 1, errors)
            self.assertFalse((self.root / "refused").exists())


if __name__ == "__main__":
    main()
