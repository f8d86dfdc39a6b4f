"""Measures tiny jobs with bench/process_scaling/measure.py: the rows are what the report needs."""

import os
import pathlib
import shutil
import sys
import tempfile
import types
import unittest

from process_scaling import measure
from process_scaling.report import Measured, round_seconds

BUILD = pathlib.Path(os.environ["ARBALEST_PROGRAM"]).parent


class Rows(unittest.TestCase):
    def setUp(self):
        folder = tempfile.TemporaryDirectory()
        self.addCleanup(folder.cleanup)
        arguments = types.SimpleNamespace(build=BUILD, turns=1)
        self.measuring = measure.Measuring(arguments, pathlib.Path(folder.name))

    def test_the_buckets_of_a_model_hold_all_its_parameters(self):
        found = {row["model"]: row for row in self.measuring.models()}
        self.assertEqual({name: row["elements"] for name, row in found.items()},
                         {"lenet": 431_080, "resnet20": 269_722, "resnet50": 25_557_032})
        for row in found.values():
            self.assertEqual(sum(floats for floats, _ in row["buckets"]), row["elements"])
            self.assertEqual([done for _, done in row["buckets"]], sorted(done for _, done in row["buckets"]))
            self.assertEqual(row["buckets"][-1][1], 1.0)
        self.assertEqual(found["lenet"]["buckets"][0][0], 5_010 + 400_500)  # both dense layers
        self.assertNotIn(str(BUILD), found["lenet"]["command"])

    def test_two_processes_train(self):
        if not shutil.which("mpirun") or not (BUILD / "libarbalest_mpi.so").exists():
            self.skipTest("needs Open MPI")
        for layout in ((1, 2, None), (2, 1, "shared memory"), (2, 1, "TCP")):
            row = self.measuring.training_row("lenet", "local_sgd", layout,
                                              [self.measuring.train("lenet", "local_sgd", *layout)])
            self.assertEqual((row["processes"], row["learners"], row["link"]), layout)
            self.assertEqual("mpirun" in row["command"], layout[0] == 2)
            self.assertGreater(round_seconds(row), 0.0)

    def test_a_link_is_fitted_to_its_sums(self):
        if not shutil.which("mpirun") or not (BUILD / "bench" / "all_reduce_bench").exists():
            self.skipTest("needs Open MPI")
        rows = list(self.measuring.links_of("TCP", 2, [("1000,20000", None), ("20000", 1024)]))
        self.assertEqual([(row["elements"], row["chunk"]) for row in rows], [(1000, None), (20000, None), (20000, 1024)])
        link = Measured(rows).links["TCP"]
        self.assertGreater(max(link.latency, link.per_message, link.per_byte), 0.0)


if __name__ == "__main__":
    measure.MODELS["lenet"] = measure.MODELS["lenet"]._replace(images=1280)  # a round has 2 x 16 mini-batches
    sys.exit(unittest.main())
