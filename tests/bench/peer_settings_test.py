"""Tests what the PyTorch peer asks of PyTorch, with a stand-in that notes calls: the test runs where PyTorch is absent,
and a peer that asks for less would be slower. pytorch_test.py trains with PyTorch itself."""

import sys
import unittest
from unittest import mock

torch = mock.MagicMock(name="torch")
torch.nn.Module = object
for name in ("torch", "torch.nn", "torch.optim", "torch.optim.swa_utils"):
    part = torch
    for word in name.split(".")[1:]:
        part = getattr(part, word)
    sys.modules[name] = part

from peers import arrangements, pytorch_worker, trainer  # noqa: E402
from peers.arrangements import Arrangement, on_cpu, on_cuda  # noqa: E402
from peers.datasets import Parts, synthetic  # noqa: E402
from peers.recipe import read_recipe  # noqa: E402
from tiny_data import ROOT  # noqa: E402


class ListOfArrangements(unittest.TestCase):
    def test_on_a_cpu_every_division_is_tried_in_both_layouts_compiled_and_not_in_both_precisions(self):
        can = {"reason_against_compiling": lambda: None, "reason_against_bfloat16": lambda: None}
        with mock.patch.multiple(arrangements, cores=lambda: 2, **can):
            found, skipped = on_cpu(compiles=True)
        self.assertEqual(skipped, [])
        tried = {
            (one.ranks, one.processes, one.threads, one.channels_last, one.compile_mode, one.bfloat16) for one in found
        }
        divisions = ((1, 1, 2), (2, 2, 1), (1, 2, 1))
        expected = {
            (*division, channels_last, mode, bfloat16)
            for division in divisions
            for channels_last in (False, True)
            for mode in (None, "default")
            for bfloat16 in (False, True)
        }
        self.assertEqual(tried, expected)
        self.assertEqual(len(found), len(expected))
        self.assertTrue(all(one.huge_pages and one.device == "cpu" for one in found))

    def test_on_a_gpu_eager_graphed_compiled_and_shared_are_tried(self):
        with mock.patch.object(arrangements, "reason_against_cuda", lambda: None):
            found, skipped = on_cuda(compiles=True, precision="BF16")
        self.assertEqual(skipped, [])
        self.assertEqual(
            {(one.processes, one.is_graphed, one.compile_mode, one.channels_last) for one in found},
            {
                (processes, graphed, mode, channels_last)
                for processes, graphed, mode in ((1, False, None), (1, True, None), (1, False, "max-autotune"))
                for channels_last in (False, True)
            }
            | {(processes, True, None, False) for processes in (2, 4, 8)},
        )
        self.assertTrue(all(one.bfloat16 and one.device == "cuda" for one in found))


class Settings(unittest.TestCase):
    def setUp(self):
        torch.reset_mock()

    def trainer(self, arrangement, job="resnet20-cifar10"):
        recipe = read_recipe(ROOT / "configs" / f"{job}.txtpb").arranged(arrangement.ranks, None, "KEEP")
        split = synthetic(recipe.dataset, 640)
        with mock.patch.object(trainer, "Examples") as self.examples:
            self.examples.return_value.__len__.return_value = len(split)
            self.parts = Parts(split, split)
            return trainer.Trainer(recipe, self.parts, arrangement, seed=3)

    def test_a_process_computes_on_the_threads_of_its_arrangement(self):
        pytorch_worker.prepare(Arrangement("it", processes=2, threads=3, is_parallel=True), 1, "meeting", False)
        torch.set_num_threads.assert_called_once_with(3)
        self.assertEqual(torch.distributed.init_process_group.call_args.kwargs["world_size"], 2)
        self.assertIs(torch.backends.cudnn.benchmark, True)
        for allowed in (False, True):
            pytorch_worker.prepare(Arrangement("it", "cuda"), 0, "meeting", allowed)
            self.assertIs(torch.backends.cuda.matmul.allow_tf32, allowed)
            self.assertIs(torch.backends.cudnn.allow_tf32, allowed)

    def test_model_and_images_have_the_memory_format_of_the_arrangement(self):
        for channels_last, layout in ((False, torch.contiguous_format), (True, torch.channels_last)):
            with mock.patch.object(trainer, "make_model") as make_model:
                self.trainer(Arrangement("it", channels_last=channels_last))
            make_model.return_value.to.assert_called_once_with("cpu", memory_format=layout)
            train, *evaluated = self.examples.call_args_list
            self.assertEqual(train, mock.call(self.parts.train, "cpu", layout, 4, True))
            self.assertEqual(evaluated, [mock.call(part, "cpu", layout) for part in self.parts.evaluated.values()])

    def test_a_model_is_compiled_if_the_arrangement_says_so_and_trained_compiled(self):
        self.assertIs(self.trainer(Arrangement("it")).model, self.trainer(Arrangement("it")).plain_model)
        torch.compile.assert_not_called()
        one = self.trainer(Arrangement("it", compile_mode="default"))
        torch.compile.assert_called_once_with(one.plain_model, mode="default")
        self.assertIs(one.model, torch.compile.return_value)
        one.train(mock.sentinel.images, mock.sentinel.labels)
        one.model.assert_called_once_with(mock.sentinel.images)

    def test_ranks_share_gradients_without_copies_and_without_buffers(self):
        one = self.trainer(Arrangement("it", processes=2, is_parallel=True))
        parallel = torch.nn.parallel.DistributedDataParallel
        parallel.assert_called_once_with(one.plain_model, broadcast_buffers=False, gradient_as_bucket_view=True)
        self.assertIs(one.model, parallel.return_value)

    def test_one_kernel_updates_all_weights(self):
        one = self.trainer(Arrangement("it"))
        self.assertIs(torch.optim.SGD.call_args.kwargs["fused"], True)
        one.train(mock.sentinel.images, mock.sentinel.labels)
        one.optimizer.zero_grad.assert_called_once_with(set_to_none=True)
        one.optimizer.step.assert_called_once_with()

    def test_forward_and_loss_are_in_the_precision_of_the_arrangement(self):
        for bfloat16 in (False, True):
            torch.autocast.reset_mock()
            self.trainer(Arrangement("it", bfloat16=bfloat16)).train(mock.sentinel.images, mock.sentinel.labels)
            torch.autocast.assert_called_once_with("cpu", torch.bfloat16, bfloat16)

    def test_a_step_is_one_mini_batch_and_the_average_is_updated_rarely(self):
        one = self.trainer(Arrangement("it"))
        with mock.patch.object(one, "train") as train, mock.patch.object(one, "indices") as indices:
            for _ in range(2 * trainer.STEPS_BETWEEN_AVERAGINGS):
                one.step()
        self.assertEqual(train.call_count, indices.call_count)
        self.assertEqual(train.call_count, 16)
        self.assertEqual(one.average.update_parameters.call_count, 2)


if __name__ == "__main__":
    unittest.main()
