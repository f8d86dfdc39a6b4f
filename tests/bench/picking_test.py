"""Tests which arrangement of a peer is the fastest on this machine: bench/peers/picking.py."""

import contextlib
import unittest
from unittest import mock

import worker
from peers import picking as module
from peers.arrangements import Arrangement, on_cpu, with_other_pages
from peers.job_file import JobError
from peers.picking import PARTS, Picking, chosen_among, pick
from peers.recipe import read_recipe
from peers.workers import Workers, WorkerFailed
from tiny_data import ROOT

THREADS = Arrangement("2 threads", threads=2)
COMPILED = Arrangement("2 threads, compiled", threads=2, compile_mode="default")
RANKS = Arrangement("2 ranks", processes=2, is_parallel=True)
APART = Arrangement("2 processes", processes=2)


def on_cpu_of(cores):
    """Returns the arrangements of FP32 on so many cores."""
    with mock.patch("peers.arrangements.cores", lambda: cores), mock.patch(
        "peers.arrangements.reason_against_compiling", lambda: None
    ):
        return on_cpu(compiles=True, precision="FP32")


ALL = [THREADS, COMPILED, RANKS, APART]


class Measured:
    """Fake processes with given speeds."""

    def __init__(self, rates, reference=()):
        self.rates, self.reference, self.order = rates, reference, []

    @contextlib.contextmanager
    def __call__(self, arrangement):
        self.order.append(arrangement.name)
        rate = self.rates[arrangement.name]
        if isinstance(rate, Exception):
            raise rate
        yield self
        self.order.append("ended")

    def images_per_second(self, steps):
        return self.rates[self.order[-1]]

    def got(self):
        return {"of": self.order[-1]}

    def reference_kernels(self):
        return {"convolution backward_weights": 0.63} if self.order[-1] in self.reference else {}


class Picks(unittest.TestCase):
    def pick(self, rates, found=ALL, reason=None, budget=1000.0, reference=()):
        self.measured = Measured(rates, reference)
        with mock.patch.object(module, "reason_against_other_pages", lambda arrangement: reason):
            return pick(Picking(self.measured, lambda arrangement: 10, budget), found, [("XLA", "not asked for")])

    def test_the_fastest_that_trains_one_model_wins_and_is_measured_with_small_pages_too(self):
        rates = {"2 threads": 5, "2 threads, compiled": 6, "2 ranks": 7, "2 processes": 9, "2 ranks, small pages": 6.5}
        picked = self.pick(rates)
        self.assertEqual((picked["winner"], picked["fastest"]), ("2 ranks", "2 processes"))
        self.assertEqual(picked["best_of_divisions"], ["2 ranks", "2 threads, compiled"])
        results = {one["name"]: one for one in picked["results"]}
        self.assertEqual(results.keys(), rates.keys())
        self.assertEqual({name for name, one in results.items() if one["measurements"] == 1}, {"2 processes"})
        self.assertEqual({one["measurements"] for one in results.values()}, {1, 3})
        self.assertEqual(results["2 ranks"]["got"], {"of": "2 ranks"})
        self.assertEqual(picked["skipped"], [{"name": "XLA", "reason": "not asked for"}])

    def test_small_pages_win_where_they_are_faster(self):
        picked = self.pick({"2 threads": 5, "2 threads, small pages": 6}, [THREADS])
        self.assertEqual(picked["winner"], "2 threads, small pages")
        picked = self.pick({"2 threads": 5, "2 threads, small pages": 4}, [with_other_pages(THREADS)])
        self.assertEqual(picked["winner"], "2 threads")

    def test_where_pages_cannot_be_chosen_that_is_said(self):
        picked = self.pick({"2 threads": 5}, [THREADS], reason="all are huge")
        self.assertEqual(picked["winner"], "2 threads")
        self.assertIn({"name": "2 threads, small pages", "reason": "all are huge"}, picked["skipped"])

    def test_what_cannot_run_is_left_out_with_its_reason(self):
        rates = {
            "2 threads": 5,
            "2 threads, compiled": WorkerFailed("no compiler"),
            "2 ranks": JobError("not divisible"),
        }
        picked = self.pick(rates | {"2 processes": 1}, reason="no")
        self.assertEqual(picked["winner"], "2 threads")
        reasons = {one["name"]: one["reason"] for one in picked["skipped"]}
        self.assertEqual((reasons["2 threads, compiled"], reasons["2 ranks"]), ("no compiler", "not divisible"))
        self.assertIsNone(self.pick({"2 threads": WorkerFailed("no")}, [THREADS]))

    def test_models_that_are_trained_apart_do_not_win(self):
        picked = self.pick({"2 processes": 9}, [APART])
        self.assertEqual((picked["winner"], picked["fastest"]), (None, "2 processes"))

    def test_reference_kernels_of_onednn_do_not_win_and_are_named(self):
        rates = {"2 threads": 5, "2 threads, compiled": 6, "2 ranks": 7, "2 processes": 9}
        picked = self.pick(rates, reason="no", reference=["2 ranks", "2 threads"])
        self.assertEqual(picked["winner"], "2 threads, compiled")
        reasons = {one["name"]: one["reason"] for one in picked["skipped"]}
        said = "runs oneDNN's reference kernels: convolution backward_weights (63 %)"
        self.assertEqual((reasons["2 ranks"], reasons["2 threads"]), (said, said))
        results = {one["name"]: one["reference_kernels"] for one in picked["results"]}
        self.assertEqual(results["2 ranks"], {"convolution backward_weights": 0.63})
        self.assertEqual(self.pick(rates, reason="no", reference=rates)["winner"], "2 ranks")  # there are no others

    def test_few_are_channels_last_first_then_variants_of_the_fastest(self):
        found, _ = on_cpu_of(2)
        last = ", channels last"
        rates = {one.name: 1.0 for one in found} | {"2 ranks" + last: 5, "2 ranks": 6, "2 ranks, compiled": 7}
        rates["2 processes" + last] = 9  # separate models are no reason to measure their variants
        self.measured = Measured(rates)
        picked = pick(Picking(self.measured, lambda arrangement: 10, 1000.0), found, [], few=True)
        measured = [name for name in self.measured.order if name != "ended"]
        first = ["2 threads" + last, "2 ranks" + last, "2 processes" + last]
        self.assertEqual(measured, [*first, "2 ranks", "2 ranks, compiled"])
        self.assertEqual((picked["winner"], picked["second"]), ("2 ranks, compiled", "2 ranks"))

    def test_no_measurement_begins_when_the_time_is_over(self):
        picked = self.pick({"2 threads": 5}, budget=-1.0)
        self.assertEqual([one["name"] for one in picked["results"]], ["2 threads"])
        late = [one["name"] for one in picked["skipped"] if one["reason"] == "there was no time left"]
        self.assertEqual(late, ["2 threads, compiled", "2 ranks", "2 processes", "2 threads, small pages"])

    def test_arrangements_by_name(self):
        self.assertEqual(chosen_among(ALL, [], "2 threads"), [THREADS, COMPILED])
        self.assertEqual(
            chosen_among(ALL, ["2 ranks", "2 threads, small pages"], ""), [RANKS, with_other_pages(THREADS)]
        )
        with self.assertRaisesRegex(LookupError, "no arrangement 'x'; there are: 2 threads; "):
            chosen_among(ALL, ["x"], "")

    def test_real_processes(self):
        recipe = read_recipe(ROOT / "configs" / "lenet-mnist.txtpb")

        def workers(arrangement):
            options = {"fails_in": "2 threads, compiled", "with": "other"}
            return Workers(worker.serve, arrangement, recipe.arranged(arrangement.ranks), options)

        picked = pick(Picking(workers, lambda arrangement: PARTS, 1000.0), [THREADS, COMPILED], [])
        self.assertIn(picked["winner"], ("2 threads", "2 threads, small pages"))
        self.assertEqual(picked["skipped"][0]["reason"], "OSError: no disk")
        self.assertEqual(picked["results"][0]["got"]["mini_batch"], 32)


if __name__ == "__main__":
    unittest.main()
