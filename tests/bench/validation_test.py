"""Tests that peers set aside the same validation examples as Arbalest: bench/peers/validation.py."""

import collections
import json
import pathlib
import unittest

from peers import validation

GOLDENS = pathlib.Path(__file__).resolve().parents[1] / "goldens" / "validation_splits.json"


class Choice(unittest.TestCase):
    def test_splits_that_the_program_makes(self):
        for case in json.loads(GOLDENS.read_text()):
            with self.subTest(fraction=case["fraction"], seed=case["seed"]):
                self.assertEqual(
                    validation.left_out(case["labels"], case["fraction"], case["seed"]), case["validation"]
                )

    def test_each_class_gives_its_share_and_halves_round_up(self):
        labels = [0] * 100 + [1] * 25 + [2] * 14
        chosen = validation.left_out(labels, 0.1)
        self.assertEqual(collections.Counter(labels[example] for example in chosen), {0: 10, 1: 3, 2: 1})
        self.assertEqual(len(set(chosen)), len(chosen))
        self.assertNotEqual(validation.left_out(labels, 0.1, seed=2), chosen)
        self.assertEqual([validation.share_of(0.5, n) for n in (0, 1, 2, 3)], [0, 1, 1, 2])
        self.assertEqual(validation.share_of(0.49999999999999994, 1), 0)


if __name__ == "__main__":
    unittest.main()
