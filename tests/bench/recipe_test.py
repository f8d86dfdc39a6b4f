"""Peers train what the job file says: bench/peers/job_file.py, recipe.py."""

import pathlib
import tempfile
import unittest

from peers.job_file import JobError
from peers.recipe import Schedule, read_recipe, recipe_of
from tiny_data import ROOT, arbalest_rows, write_mnist

JOB = (ROOT / "configs" / "lenet-mnist.txtpb").read_text()


class Recipes(unittest.TestCase):
    def test_of_the_ready_jobs(self):
        lenet = read_recipe(ROOT / "configs" / "lenet-mnist.txtpb")
        self.assertEqual((lenet.model, lenet.dataset, lenet.batch, lenet.target), ("lenet", "mnist", 32, 0.99))
        self.assertEqual((lenet.momentum, lenet.weight_decay, lenet.padding, lenet.flip), (0.9, 5e-4, 0, False))
        for depth in (20, 32):
            resnet = read_recipe(ROOT / "configs" / f"resnet{depth}-cifar10.txtpb")
            self.assertEqual((resnet.model, resnet.dataset, resnet.batch), (f"resnet{depth}", "cifar-10", 64))
            self.assertEqual((resnet.padding, resnet.flip, resnet.nesterov), (4, True, True))
            self.assertEqual(resnet.batch_norm_examples, 4096 if depth == 20 else 2048)

    def test_the_average_is_the_jobs_if_it_has_one(self):
        for setting, epochs in (("", 0.5), (" moving_average_epochs: 0", 0.5), (" moving_average_epochs: 2", 2)):
            self.assertEqual(recipe_of(JOB.replace("seed: 1", "seed: 1" + setting)).average_epochs, epochs)

    def test_what_a_peer_does_not_know_is_an_error_and_not_ignored(self):
        for old, new, complaint in (
            ("seed: 1", "seed: 1 label_smoothing: 0.1", "training.label_smoothing"),
            ("momentum: 0.9", "momentum: 0.9 dampening: 0.1", "optimizer.sgd.dampening"),
            ("one_cycle", "exponential { } one_cycle", "learning_rate.exponential"),
            ("lenet {}", "vgg { depth: 11 }", "model.zoo.vgg"),
            ("mnist {}", "digits {}", "mnist and cifar10 only"),
            ("batch_size: 32", "batch_size: 32 batch_size: 64", "training.batch_size is there 2 times"),
            ("batch_size: 32", "batch_size: }", "no value"),
            ("batch_size: 32", "", "batch"),
        ):
            with self.subTest(new), self.assertRaisesRegex(JobError, complaint):
                recipe_of(JOB.replace(old, new))

    def test_a_schedule_follows_another_number_of_epochs(self):
        recipe = read_recipe(ROOT / "configs" / "resnet20-cifar10.txtpb", max_epochs=10)
        self.assertAlmostEqual(recipe.schedule.at(3.0), 0.1)
        self.assertLess(recipe.schedule.at(10.0), 1e-6)

    def test_many_ranks_scale_the_rate_linearly_and_warm_up(self):
        scaled = Schedule(0.01, drops=((5, 0.1),)).for_ranks(4, 10)
        self.assertAlmostEqual(scaled.at(0.0), 0.01)
        self.assertAlmostEqual(scaled.at(0.5), 0.025)
        self.assertAlmostEqual(scaled.at(1.0), 0.04)
        self.assertAlmostEqual(scaled.at(5.0), 0.004)
        rising = Schedule(0.1, one_cycle=(40, 0.3, 0.04, 4e-6))
        self.assertAlmostEqual(rising.for_ranks(2, 40).at(0.0), 2 * rising.at(0.0))
        self.assertEqual(rising.for_ranks(1, 40), rising)

    def test_rates_are_those_of_arbalest(self):
        """Of the last round of each epoch of one learner, for which Arbalest reports its rate."""
        curves = (
            "multistep { drop { epoch: 1 factor: 0.5 } drop { epoch: 2.5 factor: 0.1 } }",
            "one_cycle {}",
            "one_cycle { rising: 0.5 start_factor: 0.1 final_factor: 0.01 }",
            "warm_up { epochs: 2 start_factor: 0.2 }",
            "warm_up { epochs: 1 } one_cycle {}",
        )
        with tempfile.TemporaryDirectory() as folder:
            write_mnist(folder, train=128, test=10)
            for number, curve in enumerate(curves):
                job = pathlib.Path(folder) / "job.txtpb"
                text = JOB.replace("target_accuracy: 0.99", "")
                job.write_text(text.replace("multistep { drop { epoch: 5 factor: 0.1 } }", curve))
                output = pathlib.Path(folder) / str(number)
                settings = ["training.max_epochs=6", "learners.per_device.fixed=1", "devices=cpu"]
                rows = arbalest_rows(job, output, folder, settings)
                schedule = read_recipe(job, max_epochs=6).schedule
                self.assertEqual(len(rows), 6)
                for row in rows:
                    progress = row["epoch"] - 32 / 128
                    with self.subTest(curve, epoch=row["epoch"]):
                        self.assertAlmostEqual(row["learning_rate"] / schedule.at(progress), 1.0, places=6)


if __name__ == "__main__":
    unittest.main()
