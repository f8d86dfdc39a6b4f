"""Tests the PyTorch peer: bench/peers/models.py, examples.py, trainer.py and the program. Skipped without PyTorch."""

import json
import math
import os
import pathlib
import subprocess
import sys
import tempfile
import unittest
from unittest import mock

try:
    import torch
except ImportError as missing:
    print(f"skipped: {missing}")
    sys.exit(4)

import peers.trainer
from peers import datasets, huge_pages
from peers.arrangements import SMALL_PAGES, Arrangement, arrangements
from peers.examples import Examples
from peers.models import make_model
from peers.onednn_kernels import kernels_in
from peers.recipe import read_recipe
from peers.trainer import STEPS_BETWEEN_AVERAGINGS, Trainer
from tiny_data import ROOT, arbalest_rows, write_cifar10, write_mnist

torch.set_num_threads(1)
ONE = Arrangement("1 thread")


def split_of(dataset, examples):
    return datasets.synthetic(dataset, examples)


def load_weights(model, path):
    """Loads the weights of Arbalest's model.safetensors. Its tensors are in PyTorch's order."""
    content = path.read_bytes()
    length = 8 + int.from_bytes(content[:8], "little")
    header = json.loads(content[8:length])
    header.pop("__metadata__", None)
    tensors = [value for name, value in model.state_dict().items() if not name.endswith("num_batches_tracked")]
    for target, entry in zip(tensors, header.values(), strict=True):
        first, last = (length + offset for offset in entry["data_offsets"])
        target.copy_(torch.frombuffer(bytearray(content[first:last]), dtype=torch.float32).view(entry["shape"]))


def trainer_of(model, examples, arrangement=ONE):
    job = "lenet-mnist" if model == "lenet" else f"{model}-cifar10"
    recipe = read_recipe(ROOT / "configs" / f"{job}.txtpb")
    split = split_of(recipe.dataset, examples)
    return Trainer(recipe, datasets.Parts(split, split), arrangement, seed=3)


class Models(unittest.TestCase):
    def test_have_the_parameters_of_arbalest(self):
        """Compares with the counts of `arbalest inspect`."""
        for name, count in (("lenet", 431080), ("resnet20", 269722), ("resnet32", 464154)):
            self.assertEqual(sum(p.numel() for p in make_model(name, 1).parameters()), count, name)

    def test_begin_with_its_initial_weights(self):
        lenet = make_model("lenet", 1)
        bound = math.sqrt(6.0 / (800 + 500))
        self.assertAlmostEqual(lenet[5].weight.abs().max().item(), bound, delta=0.001 * bound)
        self.assertTrue(all((p == 0).all() for name, p in lenet.named_parameters() if name.endswith("bias")))
        conv = make_model("resnet20", 1)[-4].conv2.weight
        self.assertAlmostEqual(conv.std().item(), math.sqrt(2.0 / (64 * 9)), delta=0.02 * conv.std().item())
        self.assertGreater(conv.abs().max().item(), 3.5 * conv.std().item())  # not truncated


class SameModel(unittest.TestCase):
    def test_with_the_weights_of_a_run_of_arbalest_it_predicts_the_same(self):
        with tempfile.TemporaryDirectory() as folder:
            write_mnist(folder, train=320, test=200)
            write_cifar10(folder, examples=40)
            for name, job in (("lenet", "lenet-mnist"), ("resnet20", "resnet20-cifar10")):
                output = pathlib.Path(folder, name)
                settings = [
                    "training.max_epochs=1",
                    "learners.per_device.fixed=1",
                    "devices=cpu",
                    "training.batch_size=8",
                    "learning_rate.base=0.001",  # otherwise differences of losses are only rounding
                ]
                rows = arbalest_rows(ROOT / "configs" / f"{job}.txtpb", output, folder, settings)
                model = make_model(name, 1)
                load_weights(model, output / "model.safetensors")
                dataset = read_recipe(ROOT / "configs" / f"{job}.txtpb").dataset
                tests = Examples(datasets.load(dataset, "test", folder), "cpu", torch.contiguous_format)
                with torch.inference_mode():
                    logits = model.eval()(tests.images)
                loss = torch.nn.functional.cross_entropy(logits, tests.labels).item()
                with self.subTest(name):
                    self.assertAlmostEqual(loss / rows[-1]["test_loss"], 1.0, places=4)
                    right = (logits.argmax(1) == tests.labels).float().mean().item()
                    self.assertAlmostEqual(right, rows[-1]["test_accuracy"], places=6)


class Images(unittest.TestCase):
    def test_are_normalized(self):
        split = split_of("mnist", 4)
        images, labels = Examples(split, "cpu", torch.contiguous_format).batch(torch.tensor([2]))
        expected = (split.images[2 * 784 + 5] / 255.0 - 0.1307) / 0.3081
        self.assertAlmostEqual(images[0, 0, 0, 5].item(), expected, places=5)
        self.assertEqual(labels.item(), split.labels[2])

    def test_augmented_ones_are_crops_of_the_padded_image_half_of_them_mirrored(self):
        torch.manual_seed(1)
        split = split_of("cifar-10", 2)
        examples = Examples(split, "cpu", torch.channels_last, padding=4, flip=True)
        plain = torch.frombuffer(split.images, dtype=torch.uint8).view(-1, 3, 32, 32)[1]
        padded = examples.normalized(torch.nn.functional.pad(plain, (4,) * 4)[None])[0]
        images, _ = examples.batch(torch.ones(200, dtype=torch.long))
        self.assertTrue(images.is_contiguous(memory_format=torch.channels_last))
        seen, mirrored = set(), 0
        for image in images:
            for flipped in (False, True):
                crop = image.flip(-1) if flipped else image
                windows = padded.unfold(1, 32, 1).unfold(2, 32, 1)
                at = (windows - crop[:, None, None]).abs().amax(dim=(0, 3, 4)).lt(1e-6).nonzero()
                if len(at) == 1:
                    seen.add(tuple(at[0].tolist()))
                    mirrored += flipped
                    break
            else:
                self.fail("an image is no crop")
        self.assertGreater(len(seen), 50)  # of 81 possible places
        self.assertTrue(70 < mirrored < 130, mirrored)


class Training(unittest.TestCase):
    def test_an_epoch_takes_every_example_once_in_an_order_of_its_own(self):
        trainer = trainer_of("lenet", 96)
        epochs = [torch.cat([trainer.indices() for _ in range(3)]).tolist() for _ in range(2)]
        for order in epochs:
            self.assertEqual(sorted(order), list(range(96)))
        self.assertNotEqual(*epochs)

    def test_the_rate_follows_the_schedule_by_examples_seen(self):
        trainer = trainer_of("lenet", 64)
        for step in range(11):
            trainer.step()
            expected = trainer.recipe.schedule.at(step * 32 / 64)
            self.assertEqual(trainer.optimizer.param_groups[0]["lr"], expected)
        self.assertAlmostEqual(expected, 0.0004)  # after the cycle of two epochs

    def test_the_average_forgets_exponentially(self):
        trainer = trainer_of("lenet", 64)
        kept = math.exp(-STEPS_BETWEEN_AVERAGINGS * 32 / (0.5 * 64))
        expected = None
        for _ in range(3):
            for _ in range(STEPS_BETWEEN_AVERAGINGS):
                trainer.step()
            now = trainer.plain_model[0].weight.detach().clone()
            expected = now if expected is None else kept * expected + (1.0 - kept) * now
        found = trainer.average.module[0].weight
        self.assertLess((found - expected).abs().max().item(), 1e-6)

    def test_statistics_of_the_average_are_estimated_where_it_is_evaluated(self):
        trainer = trainer_of("resnet20", 64)
        trainer.step()
        weights = trainer.evaluate()
        self.assertEqual(list(weights), ["test_accuracy"])
        self.assertTrue(0.0 <= weights["test_accuracy"] <= 1.0)
        self.assertTrue((trainer.average.module[1].running_mean == 0).all())
        trainer.evaluate(averaged=True)
        self.assertFalse((trainer.average.module[1].running_mean == 0).any())


    def test_a_step_says_which_kernels_of_onednn_it_runs(self):
        trainer = trainer_of("lenet", 64)
        with mock.patch.object(peers.trainer, "reference_shares", kernels_in):
            ran = trainer.reference_kernels()
        self.assertEqual(trainer.steps, 1)
        passes = {which for kind, _, which, _ in ran if kind == "convolution"}
        self.assertLessEqual({"forward_training", "backward_data", "backward_weights"}, passes)


class Arrangements(unittest.TestCase):
    def test_without_a_gpu_all_of_its_arrangements_are_skipped_and_said(self):
        if torch.cuda.is_available():
            self.skipTest("there is a GPU")
        found, skipped = arrangements("cuda")
        self.assertEqual(found, [])
        self.assertEqual({reason for _, reason in skipped}, {"PyTorch finds no GPU"})


class Program(unittest.TestCase):
    def setUp(self):
        folder = tempfile.TemporaryDirectory()
        self.addCleanup(folder.cleanup)
        self.root = folder.name

    def peer(self, *words, exit_code=0, text=""):
        program = str(ROOT / "bench" / "peers" / "pytorch_peer.py")
        command = [sys.executable, "-B", program, *words, "--data-root", self.root]
        done = subprocess.run(command, input=text, capture_output=True, text=True, check=False)
        self.assertEqual(done.returncode, exit_code, done.stderr)
        return done

    def test_trains_to_the_target(self):
        write_mnist(self.root, train=640, test=200)
        name = arrangements("cpu", compiles=False)[0][0].name
        done = self.peer("train", "--target", "0.9", "--arrangement", name)
        result = json.loads(done.stdout)
        self.assertEqual((result["status"], result["model"], result["arrangement"]), ("target_reached", "lenet", name))
        row = result["epoch_rows"][result["epochs_to_target"] - 1]
        self.assertEqual(row[result["counts"]]["elapsed_seconds"], result["time_to_accuracy_seconds"])
        self.assertEqual(result["pytorch"], torch.__version__)

    def test_ranks_train_one_model_and_every_epoch_is_recorded(self):
        """The comparison for two learners needs this."""
        write_cifar10(self.root, examples=26)
        found = [one for one in arrangements("cpu", compiles=False)[0] if one.is_parallel]
        if not found:
            self.skipTest("one core")
        words = ("train", "--model", "resnet20", "--all-epochs", "--max-epochs", "2", "--arrangement", found[0].name)
        job = pathlib.Path(self.root) / "job.txtpb"
        text = (ROOT / "configs" / "resnet20-cifar10.txtpb").read_text()
        job.write_text(text.replace("batch_size: 64", "batch_size: 8"))
        result = json.loads(self.peer(*words, "--job", str(job), "--rate-rule", "SQRT").stdout)
        self.assertEqual((result["status"], result["epochs"]), ("completed", 2))
        for epoch, row in enumerate(result["epoch_rows"], 1):
            self.assertEqual(row["epoch"], epoch)
            for curve in ("weights", "average"):
                self.assertTrue(0.0 <= row[curve]["test_accuracy"] <= 1.0)
        ranks = found[0].ranks
        self.assertEqual((result["got"]["mini_batch"], result["rate_rule"]), (8 * ranks, "SQRT"))
        self.assertAlmostEqual(result["got"]["learning_rate"], 0.1 * math.sqrt(ranks))
        self.assertEqual(result["coupling"]["synchronization"], "s_sgd {}")

    def test_a_larger_mini_batch(self):
        write_mnist(self.root, train=640, test=200)
        words = ("train", "--target", "0.5", "--mini-batch", "128")
        got = json.loads(self.peer(*words).stdout)["got"]
        self.assertEqual(got["mini_batch"], 128)
        self.assertAlmostEqual(got["learning_rate"], 0.08)
        self.assertIn("larger than the 640", self.peer("train", "--mini-batch", "641", exit_code=3).stderr)
        self.assertIn("is below 1", self.peer("train", "--mini-batch", "0", exit_code=2).stderr)

    def test_a_validation_set_is_evaluated_after_epochs_and_the_test_set_at_the_end(self):
        write_mnist(self.root, train=640, test=200)
        job = pathlib.Path(self.root) / "job.txtpb"
        text = (ROOT / "configs" / "lenet-mnist.txtpb").read_text()
        job.write_text(text.replace("mnist {}", "mnist {} validation { fraction: 0.25 }"))
        result = json.loads(self.peer("train", "--all-epochs", "--max-epochs", "1", "--job", str(job)).stdout)
        for curve in ("weights", "average"):
            row = result["epoch_rows"][0][curve]
            self.assertNotIn("test_accuracy", row)
            for value, examples in ((row["validation_accuracy"], 160), (result["at_end"][curve]["test_accuracy"], 200)):
                self.assertAlmostEqual(value * examples, round(value * examples), places=6)
        self.assertIn(
            "larger than the 480", self.peer("train", "--job", str(job), "--mini-batch", "512", exit_code=3).stderr
        )

    def test_asks_for_huge_pages_unless_its_arrangement_has_small_ones(self):
        if reason := huge_pages.reason_against_choosing():
            self.skipTest(reason)
        write_mnist(self.root, train=6400, test=10)
        name = arrangements("cpu", compiles=False)[0][0].name
        for arrangement, has_huge_pages in ((name, True), (name + SMALL_PAGES, False)):
            words = ("turns", "--arrangement", arrangement)
            got = json.loads(self.peer(*words, text="0.1\n").stdout.splitlines()[1])["got"]
            self.assertEqual(got["asks_for_huge_pages"], has_huge_pages)
            self.assertEqual(got["huge_page_bytes"] > 6400 * 784 * 2, has_huge_pages)  # the images alone take 20 MB

    def test_measures_in_turns(self):
        write_mnist(self.root, train=64, test=10)
        lines = self.peer("turns", text="0.1\n0.1\n").stdout.splitlines()
        ready = json.loads(lines[0])
        self.assertEqual((ready["ready"], ready["pytorch"]), (True, torch.__version__))
        self.assertEqual(len(lines), 3)
        self.assertGreater(json.loads(lines[2])["images_per_second"], 0)

    def test_picks_among_the_fastest_by_several_processes_each(self):
        write_mnist(self.root, train=64, test=10)
        said = self.peer("pick", "--only", "threads, channels last", "--steps", "5", "--no-compile")
        picked = json.loads(said.stdout.splitlines()[-1])
        measurements = {one["name"]: one["measurements"] for one in picked["results"]}
        self.assertEqual(measurements[picked["winner"]], 3)
        self.assertEqual(sorted(measurements.values())[-3:], [3] * min(3, len(measurements)))
        again = self.peer("pick", "--among", picked["winner"], "--steps", "5", "--mini-batch", "64", "--no-compile")
        again = json.loads(again.stdout.splitlines()[-1])
        self.assertEqual({one["got"]["mini_batch"] for one in again["results"]}, {64})
        self.assertIn(picked["winner"], [one["name"] for one in again["results"]])
        rates = {one["name"]: one["images_per_second"] for one in picked["results"] if one["measurements"] == 3}
        self.assertEqual(max(rates, key=rates.get), picked["winner"])

    def test_competes_with_arbalest(self):
        write_mnist(self.root, train=640, test=200)
        name = arrangements("cpu", compiles=False)[0][0].name

        def compare(arrangement, output):
            command = [str(ROOT / "bench" / "compare.sh"), "--program", os.environ["ARBALEST_PROGRAM"], "--quick"]
            command += ["--data-root", self.root, "--output", f"{self.root}/{output}", "--peers", sys.prefix]
            command += ["--turns", "2", "--seconds", "0.2", "--target", "0.9", "--arrangement", arrangement]
            command += ["--set", "training.precision=FP32"]  # so that Arbalest has one side only
            done = subprocess.run(command, capture_output=True, text=True, check=False)
            (page,) = pathlib.Path(self.root, output).glob("*.md")
            result = json.loads(pathlib.Path(self.root, output, "compare.json").read_text())
            return done, result, page.read_text()

        done, result, page = compare(name, "good")
        self.assertEqual(done.returncode, 0, done.stderr)
        ours, theirs = result["models"][0]["sides"]
        self.assertEqual(
            (len(ours["rates"]), len(theirs["rates"]), len(ours["runs"]), len(theirs["runs"])), (2, 2, 1, 1)
        )
        self.assertIn("lenet: time to 90 % over that of PyTorch", done.stderr)
        self.assertEqual(theirs["got"]["mini_batch"], 32)
        for part in (f"| PyTorch, {name} ", torch.__version__, "the same end to end", "32 images a step", "; sma { "):
            self.assertIn(part, page)
        done, result, page = compare("none", "bad")
        self.assertEqual(done.returncode, 1, done.stderr)
        self.assertEqual(len(result["died"]), 2)  # its turns and its training
        self.assertEqual(len(result["models"][0]["sides"][0]["runs"]), 1)  # Arbalest continues
        self.assertIn("there is no arrangement 'none'", page)

    def test_says_what_is_wrong(self):
        for command in ("pick", "turns", "train"):
            self.assertIn("skipped: ", self.peer(command, exit_code=4).stderr)
        write_mnist(self.root, train=64, test=10)
        self.assertIn("there is no arrangement 'x'", self.peer("turns", "--arrangement", "x", exit_code=2).stderr)
        self.assertIn("not in (0, 1]", self.peer("train", "--target", "1.5", exit_code=2).stderr)
        self.assertIn("there is no arrangement 'x'", self.peer("pick", "--among", "x", exit_code=2).stderr)
        self.assertIn("absent: error: No such file", self.peer("train", "--job", "absent", exit_code=3).stderr)
        self.assertIn("not allowed with", self.peer("train", "--target", "0.5", "--all-epochs", exit_code=2).stderr)


if __name__ == "__main__":
    unittest.main()
