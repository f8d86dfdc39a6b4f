"""Tests the processes of a peer: bench/peers/workers.py. Their learners are in pure Python (worker.py)."""

import unittest

import worker
from peers import huge_pages
from peers.arrangements import Arrangement, with_other_pages
from peers.datasets import DataMissing
from peers.job_file import JobError
from peers.recipe import read_recipe
from peers.workers import Workers, WorkerFailed
from tiny_data import ROOT

RANKS = Arrangement("2 ranks", processes=2, is_parallel=True)


class Processes(unittest.TestCase):
    def workers(self, arrangement=RANKS, **options):
        recipe = read_recipe(ROOT / "configs" / "lenet-mnist.txtpb").arranged(arrangement.ranks)
        return Workers(worker.serve, arrangement, recipe, options)

    def test_measure_train_and_say_what_they_got(self):
        with self.workers() as workers:
            self.assertGreater(workers.images_per_second(5), 0)
            rows = []
            result = workers.train(None, 2, rows.append)
            self.assertEqual((result["status"], result["epoch_rows"]), ("completed", rows))
            got = workers.got()
            self.assertEqual(workers.reference_kernels(), {"convolution": 0.5})
        self.assertEqual((got["division"], got["mini_batch"], got["learning_rate"]), ("2 ranks x 1 thread", 64, 0.04))

    def test_their_memory_is_in_huge_pages_as_the_arrangement_says(self):
        if reason := huge_pages.reason_against_choosing():
            self.skipTest(reason)
        with self.workers() as workers:
            self.assertGreater(workers.got()["huge_page_bytes"], worker.HELD)  # sum over two processes
        with self.workers(with_other_pages(RANKS)) as workers:
            self.assertEqual(workers.got()["huge_page_bytes"], 0)

    def test_what_is_wrong_with_job_or_data_is_passed_on_as_such(self):
        for kind, error in (("data", DataMissing), ("job", JobError), ("other", WorkerFailed)):
            with self.subTest(kind), self.assertRaisesRegex(error, "no such|no disk"):
                with self.workers(**{"fails_in": "2 ranks", "with": kind}):
                    self.fail("it has started")

    def test_a_process_that_ends_is_said_with_its_exit_code(self):
        with self.assertRaisesRegex(WorkerFailed, "'2 ranks' ended with exit code 7"):
            with self.workers(ends=True):
                self.fail("it has started")


if __name__ == "__main__":
    unittest.main()
