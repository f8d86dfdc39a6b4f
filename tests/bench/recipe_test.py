"""Tests that peers train what the job file says: bench/peers/job_file.py, recipe.py."""

import dataclasses
import pathlib
import tempfile
import unittest

from peers.job_file import JobError
from peers.recipe import read_recipe, recipe_of
from peers.schedule import Schedule
from tiny_data import ROOT, arbalest_rows, write_mnist

CURVE = "one_cycle { epochs: 2 final_factor: 0.02 }"  # of this job
FOLLOWS = "for_batch_size: 32 limit: 0.04"  # of this job
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
            ("mnist {}", "mnist {} fold: 1", "do not know data.fold"),
            ("mnist {}", "mnist {} validation { fraction: 0.1 stratified: false }", "know data.validation.stratified"),
            ("mnist {}", "mnist {} validation { fraction: 0.9 }", "validation.fraction in"),
            (
                "mnist {}",
                "mnist {} augmentation { cutout: 8 }",
                "cannot train with data.augmentation.cutout: 8; they know 0",
            ),
            ("mnist {}", "mnist {} normalization { mean: 0.5 }", "own mean only"),
            ("mnist {}", 'mnist { directory: "other" }', "data.mnist.directory: other"),
            ("lenet {}", "lenet { batch_norm: true }", "model.zoo.lenet.batch_norm: true; they know false"),
            ("seed: 1", "precision: FP16", "training.precision: FP16; they know FP32, TF32, BF16, AUTO"),
            ("seed: 1", "batch_norm_statistics: AVERAGED", "training.batch_norm_statistics: AVERAGED"),
            ("name:", "initialize { } name:", "do not know initialize"),
            ("{ batch_size: 32", "{ batch_size: 32 batch_size: 64", "training.batch_size is there 2 times"),
            ("{ batch_size: 32", "{ batch_size: }", "no value"),
            ("{ batch_size: 32", "{", "batch"),
        ):
            with self.subTest(new), self.assertRaisesRegex(JobError, complaint):
                recipe_of(JOB.replace(old, new))

    def test_a_schedule_follows_another_number_of_epochs(self):
        recipe = read_recipe(ROOT / "configs" / "resnet20-cifar10.txtpb", max_epochs=10)
        self.assertAlmostEqual(recipe.schedule.at(3.0), 0.1)
        self.assertLess(recipe.schedule.at(10.0), 1e-6)

    def test_an_error_names_the_place_of_the_field(self):
        with tempfile.TemporaryDirectory() as folder:
            job = pathlib.Path(folder) / "job.txtpb"
            lines = JOB.splitlines()
            number = next(i for i, line in enumerate(lines) if line.startswith("optimizer"))
            for new, column, complaint in (
                (
                    "optimizer { sgd { momentum: 0.9 } clip_gradient_norm: 1 }",
                    35,
                    "do not know optimizer.clip_gradient_norm",
                ),
                ("optimizer { adamw {} }", 13, "do not know optimizer.adamw"),
                ("optimizer { sgd { momentum: = } }", 29, "'= } }' is beyond the peers' reader"),
                ("optimizer: 3", 1, "optimizer must be a message"),
            ):
                job.write_text("\n".join([*lines[:number], new, *lines[number + 1 :]]))
                with self.subTest(new), self.assertRaises(JobError) as raised:
                    read_recipe(job)
                self.assertTrue(
                    str(raised.exception).startswith(f"{job}:{number + 1}:{column}: error: "), raised.exception
                )
                self.assertIn(complaint, str(raised.exception))

    def test_any_synchronization_will_do_and_is_said(self):
        for synchronization in (
            "sma { central_momentum: 0.9 period: 4 }",
            "s_sgd { bucket_mb: 4 }",
            "sma {} switch { at_epoch: 25 local_sgd { period: 16 } } switch { at_drop: 1 s_sgd {} learners: 4 }",
        ):
            job = JOB.replace("sma {}", synchronization) + "learners { per_device { fixed: 2 } }"
            coupling = recipe_of(job).coupling
            self.assertEqual(coupling["synchronization"], synchronization)
            self.assertEqual(coupling["learners"], "per_device { fixed: 2 }")
            self.assertEqual(coupling["with_learners"], "SQRT")
        self.assertEqual(recipe_of(JOB).schedule, recipe_of(job).schedule)

    def test_the_precision_is_the_jobs_or_open(self):
        self.assertIsNone(recipe_of(JOB).precision)
        self.assertIsNone(recipe_of(JOB.replace("seed: 1", "precision: AUTO")).precision)
        for precision in ("FP32", "BF16", "TF32"):
            self.assertEqual(recipe_of(JOB.replace("seed: 1", f"precision: {precision}")).precision, precision)

    def test_a_validation_split_is_the_jobs(self):
        self.assertIsNone(recipe_of(JOB).validation)
        for fields, expected in (("fraction: 0.1", (0.1, 1)), ("fraction: 0.25 seed: 7", (0.25, 7))):
            job = JOB.replace("mnist {}", "mnist {} validation { " + fields + " }")
            self.assertEqual(
                recipe_of(
                    job.replace("max_epochs: 10 target_accuracy: 0.99 seed: 1", "max_epochs: 9 seed: 3")
                ).validation,
                expected,
            )

    def test_the_job_with_all_defaults_written_out_is_the_same(self):
        """Reads the job in a run's directory."""
        with tempfile.TemporaryDirectory() as folder:
            write_mnist(folder, train=64, test=10)
            output = pathlib.Path(folder) / "run"
            job = ROOT / "configs" / "lenet-mnist.txtpb"
            arbalest_rows(job, output, folder, ["devices=cpu", "learners.per_device.fixed=1"])
            expected, found = read_recipe(job), read_recipe(output / "job.txtpb")
            self.assertEqual(found.precision, "FP32")
            self.assertIn("central_momentum", found.coupling["synchronization"])
            same = {"precision": None, "coupling": expected.coupling}
            self.assertEqual(dataclasses.replace(found, **same), expected)

    def test_a_larger_mini_batch_scales_the_rate_and_warms_up(self):
        scaled = Schedule(0.01, drops=((5, 0.1),)).scaled(4, 10)
        self.assertAlmostEqual(scaled.at(0.0), 0.01)
        self.assertAlmostEqual(scaled.at(0.5), 0.025)
        self.assertAlmostEqual(scaled.at(1.0), 0.04)
        self.assertAlmostEqual(scaled.at(5.0), 0.004)
        rising = Schedule(0.1, one_cycle=(40, 0.3, 0.04, 4e-6))
        self.assertAlmostEqual(rising.scaled(2, 40).at(0.0), 2 * rising.at(0.0))
        self.assertEqual(rising.scaled(1, 40), rising)
        self.assertAlmostEqual(rising.scaled(4, 40, "SQRT").base, 0.2)
        self.assertEqual(rising.scaled(4, 40, "KEEP"), rising)

    def test_ranks_divide_a_mini_batch_or_have_the_jobs_each(self):
        recipe = recipe_of(JOB)
        for ranks, mini_batch, batch, rate in (
            (1, None, 32, 0.02),
            (2, None, 32, 0.04),
            (2, 256, 128, 0.16),
            (1, 64, 64, 0.04),
        ):
            arranged = recipe.arranged(ranks, mini_batch)
            self.assertEqual(arranged.batch, batch)
            self.assertAlmostEqual(arranged.schedule.base, rate)
        with self.assertRaisesRegex(JobError, "64 examples cannot be divided among 3 ranks"):
            recipe.arranged(3, 64)

    def test_rates_are_those_of_arbalest(self):
        """Compares with the learning rate of each epoch's last round, which Arbalest reports for one learner."""
        curves = (
            "multistep { drop { epoch: 1 factor: 0.5 } drop { epoch: 2.5 factor: 0.1 } }",
            "one_cycle {}",
            "one_cycle { rising: 0.5 start_factor: 0.1 final_factor: 0.01 }",
            "warm_up { epochs: 2 start_factor: 0.2 }",
            "warm_up { epochs: 1 } one_cycle {}",
            "one_cycle {} with_batch_size: SQRT",
        )
        self.assertIn(FOLLOWS, JOB)
        with tempfile.TemporaryDirectory() as folder:
            write_mnist(folder, train=128, test=10)
            for number, curve in enumerate(curves):
                job = pathlib.Path(folder) / "job.txtpb"
                text = JOB.replace("target_accuracy: 0.99", "")
                self.assertIn(CURVE, text)
                follows = "for_batch_size: 8 limit: 0.05" if number % 2 == 0 else FOLLOWS
                job.write_text(text.replace(CURVE, curve).replace(FOLLOWS, follows))
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
