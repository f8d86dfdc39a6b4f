"""Tests statistics of turns and runs: bench/comparison/pairing.py, page.py and machine.py,
bench/peers/accuracy_target.py and target_run.py."""

import itertools
import time
import unittest

from comparison.machine import busy_between, core_ticks
from comparison.by_epoch import accuracy_read, by_epoch
from comparison.page import headline, to_target
from comparison.pairing import (
    all_reach,
    end_to_end,
    epochs_of,
    median_with_missing,
    overhead,
    ratios,
    reached,
    spread,
    summarize,
    time_ratios,
    times_to_accuracy,
)
from peers.accuracy_target import epochs_to
from peers.target_run import train_to_target


def curve(*accuracies, epoch=10.0, training=8.0, preparation=5.0):
    return [
        {"test_accuracy": a, "elapsed_seconds": preparation + epoch * (i + 1), "training_seconds": training}
        for i, a in enumerate(accuracies)
    ]


def run(seed=1, **curves):
    return {"seed": seed, "preparation_seconds": 5.0, "curves": curves}


class Targets(unittest.TestCase):
    def test_the_lower_median_of_the_last_five_counts(self):
        self.assertEqual(epochs_to(0.9, [0.9]), 1)
        self.assertEqual(epochs_to(0.9, [0.8, 0.95]), None)  # the lower median of two is the smaller one
        self.assertEqual(epochs_to(0.9, [0.8, 0.95, 0.9]), 3)
        self.assertEqual(epochs_to(0.9, [0.1, 0.1, 0.1, 0.9, 0.9, 0.9]), 6)  # the first one is dropped
        self.assertEqual(epochs_to(0.9, [0.1, 0.1, 0.1, 0.9, 0.9, 0.1]), None)
        self.assertEqual(epochs_to(None, [1.0]), None)
        self.assertEqual(epochs_to(0.9, []), None)

    def test_the_sooner_of_weights_and_average_counts(self):
        weights, average = curve(0.1, 0.9, 0.9), curve(0.9, 0.9, 0.9, epoch=12.0)
        self.assertEqual(reached(0.9, run(weights=weights, average=average)), (1, 17.0, "average"))
        self.assertEqual(reached(0.9, run(weights=curve(0.9), average=average)), (1, 15.0, "weights"))
        self.assertIsNone(reached(0.95, run(weights=weights, average=average)))
        self.assertIsNone(reached(0.9, run(weights=[])))

    def test_a_run_that_was_cut_off_has_not_reached_the_target(self):
        good, bad = run(weights=curve(0.9)), run(weights=curve(0.1))
        self.assertTrue(all_reach(0.9, [good, good], 2))
        self.assertFalse(all_reach(0.9, [good], 2))
        self.assertFalse(all_reach(0.9, [good, bad], 2))


class Summaries(unittest.TestCase):
    def test_quartiles(self):
        self.assertIsNone(summarize([]))
        self.assertEqual(summarize([2.0])["third_quartile"], 2.0)
        both = summarize([1.0, 3.0])
        self.assertEqual((both["first_quartile"], both["median"], both["third_quartile"]), (1.5, 2.0, 2.5))
        self.assertEqual(spread(both), 0.5)

    def test_ratios_are_taken_turn_by_turn(self):
        """If the machine slows down by half, ratios do not change."""
        self.assertEqual(ratios([20.0, 10.0], [10.0, 5.0]), [2.0, 2.0])

    def test_a_run_that_does_not_reach_the_target_is_slower_than_all_that_do(self):
        self.assertEqual(median_with_missing([3, None, 2]), 3)
        self.assertEqual(median_with_missing([1, 2]), 1.5)
        self.assertIsNone(median_with_missing([3, None]))
        self.assertIsNone(median_with_missing([]))
        side = {"runs": [run(weights=curve(0.9)), run(weights=[]), run(weights=curve(0.1, 0.1))], "rates": [1.0]}
        self.assertIsNone(epochs_of(side, 0.9))
        self.assertIsNone(times_to_accuracy(side, 0.9, 100))

    def test_time_is_epochs_times_seconds_of_an_epoch_at_the_speed_of_each_turn(self):
        one = run(weights=curve(0.1, 0.9, 0.9))
        self.assertEqual(overhead(one, None), 1.25)  # an epoch of 10 s, 8 of them training
        both = run(weights=curve(0.1), average=curve(0.9, epoch=16.0))
        self.assertEqual(overhead(both, reached(0.9, both)), 2.0)  # for the average, which reached the target
        side = {"runs": [one], "rates": [100.0, 50.0]}
        # 3 epochs: the lower median of two is the worse one.
        self.assertEqual(times_to_accuracy(side, 0.9, 1000), [5.0 + 3 * 1.25 * 10.0, 5.0 + 3 * 1.25 * 20.0])
        self.assertIsNone(times_to_accuracy({"runs": [one], "rates": []}, 0.9, 1000))

    def test_the_spread_of_a_ratio_is_that_of_turns_and_seeds(self):
        ours = {"runs": [run(1, z=curve(0.9)), run(2, z=curve(0.1, 0.9, 0.9))], "rates": [100.0, 50.0]}
        theirs = {"runs": [run(2, w=curve(0.9)), run(1, w=curve(0.9)), run(3, w=curve(0.1))], "rates": [50.0, 50.0]}
        # 5 s of preparation, then 12.5 s per epoch at 100 images/s and 25 s at 50.
        self.assertEqual(times_to_accuracy(ours, 0.9, 1000), [17.5, 30.0, 42.5, 80.0])
        self.assertEqual(time_ratios(ours, theirs, 0.9, 1000), [17.5 / 30, 1.0, 42.5 / 30, 80.0 / 30])
        theirs["runs"][1]["curves"]["w"] = curve(0.1)
        self.assertEqual(time_ratios(ours, theirs, 0.9, 1000), [])  # most of their runs do not reach it

    def test_seeds_that_do_not_get_there_are_not_left_out_silently(self):
        ours = {
            "name": "ours",
            "runs": [run(1, z=curve(0.9)), run(2, z=curve(0.9)), run(3, z=curve(0.1))],
            "rates": [8.0],
        }
        theirs = {"name": "it", "runs": [run(seed, w=curve(0.9)) for seed in (1, 2, 3)], "rates": [4.0]}
        rows = [line for line in to_target([ours, theirs], 0.9, 1000) if line.startswith(("| ours", "| it"))]
        self.assertIn("2 of 3 seeds", rows[0].split("|")[3])
        self.assertNotIn("seeds", rows[1].split("|")[3])
        self.assertIn("2 of 3 seeds", rows[1].split("|")[5])
        said = headline({"model": "lenet", "targets": [0.9], "examples": 1000, "sides": [ours, theirs]})
        self.assertIn("2 of 3 seeds", said[1])

    def test_what_others_take_of_the_cores_is_what_was_not_idle(self):
        before = core_ticks("cpu  100 0 50 1000 10 0 0 7 0 0")
        self.assertEqual(busy_between(before, core_ticks("cpu  100 0 50 1190 20 0 0 7 0 0")), 0.0)
        self.assertEqual(busy_between(before, core_ticks("cpu  130 10 60 1090 20 0 0 57 0 0")), 0.5)

    def test_runs_of_the_same_seed_are_pairs(self):
        ours = {"runs": [run(1, z=curve(0.9)), run(2, z=curve(0.1))]}
        theirs = {"runs": [run(2, weights=curve(0.9, epoch=20.0)), run(1, weights=curve(0.9, epoch=30.0))]}
        self.assertEqual(end_to_end(ours, theirs, 0.9), [(1, 15.0, 35.0), (2, None, 25.0)])


class ByEpoch(unittest.TestCase):
    def test_ours_less_theirs_is_taken_seed_by_seed(self):
        ours = {
            "name": "Arbalest",
            "is_ours": True,
            "runs": [run(1, model=curve(0.5, 0.9)), run(2, model=curve(0.7, 0.8))],
        }
        theirs = {"name": "it", "is_ours": False}
        theirs["runs"] = [
            run(2, average=curve(0.5, 0.7), weights=curve(0.1)),
            run(1, average=curve(0.6, 0.9), weights=[]),
        ]
        lines = by_epoch([ours, theirs, {"name": "unrun", "is_ours": False, "runs": []}])
        self.assertIn("Test accuracy in % after each epoch, seeds 1, 2", lines[0])
        columns = {
            cells[1].strip(): [cell.strip() for cell in cells[2:-1]]
            for cells in (line.split("|") for line in lines[4:-1])
        }
        self.assertEqual(
            columns["1"],
            ["60.00 (50.00 to 70.00)", "55.00 (50.00 to 60.00)", "5.00 (-10.00 to 20.00)", "10.00", "60.00"],
        )
        self.assertEqual(columns["2"][1:], ["80.00 (70.00 to 90.00)", "5.00 (0.00 to 10.00)", "-", "-"])
        self.assertEqual(by_epoch([theirs]), [])

    def test_says_which_accuracy_it_reads(self):
        self.assertEqual(accuracy_read([{"runs": [run(1, model=curve(0.5))]}]), "test")
        rows = [row | {"validation_accuracy": 0.1} for row in curve(0.5)]
        self.assertEqual(accuracy_read([{"runs": [run(1, model=rows)]}]), "validation")


class Learner:
    """A learner with given accuracies, which takes long to evaluate the average."""

    steps_of_epoch = 3

    def __init__(self, weights, average=None, loss=1.0, validation=None):
        self.curves = {False: iter(weights), True: iter(average or [])}
        self.has_average = average is not None
        self.loss, self.steps, self.validation = loss, 0, validation
        self.has_validation, self.tests = validation is not None, 0

    def step(self):
        self.steps += 1
        return self.loss

    def finish(self, loss):
        return loss

    def evaluate(self, averaged, at_end):
        time.sleep(0.05 if averaged else 0.0)
        if self.has_validation and not at_end:
            return {"validation_accuracy": next(self.validation)}
        self.tests += 1
        return {"test_accuracy": next(self.curves[averaged])}


class TargetRuns(unittest.TestCase):
    def train(self, learner, max_epochs=9, target=0.9):
        rows = []
        result = train_to_target(learner, target, max_epochs, time.perf_counter(), rows.append)
        self.assertEqual(result["epoch_rows"], rows)
        return result

    def test_stops_when_either_candidate_reaches_the_target(self):
        learner = Learner(itertools.repeat(0.1), [0.1, 0.95, 0.95])
        result = self.train(learner)
        self.assertEqual(
            (result["status"], result["counts"], result["epochs_to_target"]), ("target_reached", "average", 3)
        )
        self.assertEqual(learner.steps, 9)  # the step in the preparation counts for the first epoch

    def test_each_clock_leaves_out_the_evaluation_of_the_other_candidate(self):
        rows = self.train(Learner(itertools.repeat(0.1), itertools.repeat(0.1)), max_epochs=3)["epoch_rows"]
        apart = rows[-1]["average"]["elapsed_seconds"] - rows[-1]["weights"]["elapsed_seconds"]
        evaluations = [sum(row[name]["evaluation_seconds"] for row in rows) for name in ("average", "weights")]
        self.assertAlmostEqual(apart, evaluations[0] - evaluations[1])
        self.assertGreater(evaluations[0], 0.15)

    def test_a_target_that_is_not_reached_and_a_loss_that_is_no_number(self):
        result = self.train(Learner(itertools.repeat(0.1)), max_epochs=2)
        self.assertEqual(
            (result["status"], result["time_to_accuracy_seconds"], result["epochs"]), ("completed", None, 2)
        )
        result = self.train(Learner([], [], loss=float("nan")))
        self.assertEqual((result["status"], result["epoch_rows"]), ("diverged", []))

    def test_without_a_target_every_epoch_is_trained_and_recorded(self):
        result = self.train(Learner(itertools.repeat(1.0), itertools.repeat(1.0)), max_epochs=4, target=None)
        self.assertEqual(
            (result["status"], [row["epoch"] for row in result["epoch_rows"]]), ("completed", [1, 2, 3, 4])
        )

    def test_the_validation_accuracy_decides_where_there_is_one(self):
        learner = Learner(itertools.repeat(1.0), validation=iter([0.1, 0.95, 0.95]))
        result = self.train(learner)
        self.assertEqual((result["status"], result["epochs_to_target"]), ("target_reached", 3))
        self.assertEqual(result["epoch_rows"][0]["weights"]["validation_accuracy"], 0.1)
        self.assertNotIn("test_accuracy", result["epoch_rows"][0]["weights"])
        self.assertEqual((learner.tests, result["at_end"]), (1, {"weights": {"test_accuracy": 1.0}}))
        self.assertNotIn("at_end", self.train(Learner(itertools.repeat(1.0))))
        rows = [row | {"validation_accuracy": 0.1} for row in curve(0.95, 0.95)]
        self.assertIsNone(reached(0.9, run(weights=rows)))
        rows[1]["validation_accuracy"] = rows[0]["validation_accuracy"] = 0.9
        self.assertEqual(reached(0.9, run(weights=rows))[0], 1)


if __name__ == "__main__":
    unittest.main()
