"""Tests how the peers can use a machine: bench/peers/arrangements.py, and those of TensorFlow and JAX."""

import unittest
from unittest import mock

from peers import arrangements, jax_arrangements, tensorflow_arrangements
from peers.arrangements import divisions, named, on_cpu, types_on_cpu, with_other_pages


class PyTorch(unittest.TestCase):
    def test_cores_are_divided_among_ranks_in_every_way(self):
        found = [(one.name, one.processes, one.threads, one.trains_one_model, one.ranks) for one in divisions(6)]
        self.assertEqual(
            found,
            [
                ("6 threads", 1, 6, True, 1),
                ("2 ranks x 3 threads", 2, 3, True, 2),
                ("3 ranks x 2 threads", 3, 2, True, 3),
                ("6 ranks", 6, 1, True, 6),
                ("6 processes", 6, 1, False, 1),
            ],
        )
        self.assertEqual([one.name for one in divisions(1)], ["1 thread"])

    def test_processes_that_train_apart_are_an_upper_bound_only(self):
        found, skipped = on_cpu(compiles=False)
        self.assertTrue(any(one.trains_one_model for one in found))
        for one in found:
            self.assertEqual(one.trains_one_model, "processes" not in one.name)
        self.assertIn("compiled", [name for name, _ in skipped])
        self.assertEqual(len({one.name for one in found}), len(found))

    def test_the_precision_is_the_jobs_or_all_are_tried(self):
        with mock.patch.object(arrangements, "reason_against_bfloat16", lambda: None):
            self.assertEqual(types_on_cpu(None), ([False, True], []))
            self.assertEqual(types_on_cpu("BF16"), ([True], []))
            self.assertEqual(types_on_cpu("FP32"), ([False], [("bfloat16", "the job says FP32")]))
            self.assertEqual(types_on_cpu("TF32"), ([], [("TF32", "for GPUs only")]))
        with mock.patch.object(arrangements, "reason_against_bfloat16", lambda: "no such CPU"):
            self.assertEqual(types_on_cpu(None), ([False], [("bfloat16", "no such CPU")]))
            self.assertEqual(types_on_cpu("BF16"), ([], [("bfloat16", "no such CPU")]))

    def test_an_arrangement_is_found_by_its_name_with_either_kind_of_pages(self):
        found, _ = on_cpu(compiles=False)
        for one in found:
            self.assertTrue(one.huge_pages)
            self.assertIs(named(found, one.name), one)
            small = named(found, one.name + ", small pages")
            self.assertFalse(small.huge_pages)
            self.assertEqual(with_other_pages(small), one)
        self.assertIsNone(named(found, "none"))

    def test_what_it_gets_is_described(self):
        one = arrangements.Arrangement(
            "it", processes=2, threads=3, is_parallel=True, compile_mode="default", bfloat16=True
        )
        self.assertEqual(
            one.described(),
            {
                "division": "2 ranks x 3 threads",
                "memory_format": "contiguous",
                "compiler": "torch.compile (default)",
                "precision": "BF16",
                "asks_for_huge_pages": True,
            },
        )


class TensorFlow(unittest.TestCase):
    def test_xla_and_bfloat16_are_tried_together_and_apart(self):
        with mock.patch.object(arrangements, "reason_against_bfloat16", lambda: None):
            found, skipped = tensorflow_arrangements.arrangements()
            self.assertEqual(skipped, [])
            tried = {(one.compile_mode, one.bfloat16, one.operators) for one in found}
            self.assertEqual(len(tried), 8)
            self.assertEqual(len({one.name for one in found}), 8)
            described = found[-1].described()
            self.assertEqual((described["compiler"], described["memory_format"]), ("XLA", "channels last"))
            self.assertIn("one operator at a time", described["division"])
            plain, skipped = tensorflow_arrangements.arrangements(compiles=False, precision="FP32")
            self.assertEqual({(one.compile_mode, one.bfloat16) for one in plain}, {(None, False)})
            self.assertEqual([name for name, _ in skipped], ["bfloat16", "XLA"])


class Jax(unittest.TestCase):
    def test_one_process_competes_and_a_process_per_core_is_its_upper_bound(self):
        with (
            mock.patch.object(arrangements, "reason_against_bfloat16", lambda: None),
            mock.patch.object(jax_arrangements, "cores", lambda: 4),
        ):
            found, skipped = jax_arrangements.arrangements()
            self.assertEqual(skipped, [])
            self.assertEqual(
                [(one.name, one.threads, one.trains_one_model, one.bfloat16) for one in found],
                [
                    ("4 threads", 4, True, False),
                    ("4 threads, bfloat16", 4, True, True),
                    ("4 processes", 1, False, False),
                    ("4 processes, bfloat16", 1, False, True),
                ],
            )
            self.assertEqual({one.described()["compiler"] for one in found}, {"XLA"})
            found, skipped = jax_arrangements.arrangements(compiles=False, precision="FP32")
            self.assertEqual((found, [name for name, _ in skipped]), ([], ["bfloat16", "jit"]))


if __name__ == "__main__":
    unittest.main()
