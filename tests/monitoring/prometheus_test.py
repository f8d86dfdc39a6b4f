"""Prometheus' own parser reads the file that `arbalest train --prometheus` keeps, at any moment of a run."""

import pathlib
import subprocess
import tempfile
import time
import unittest

from prometheus_client.parser import text_string_to_metric_families

import runs


def samples_in(path):
    """Metric -> {labels as a set: value}. Every sample has the run as its label."""
    samples = {}
    for family in text_string_to_metric_families(path.read_text()):
        assert family.documentation and family.type in ("gauge", "counter"), family
        for sample in family.samples:
            labels = frozenset(sample.labels.items())
            assert labels not in samples.setdefault(sample.name, {}), sample
            samples[sample.name][labels] = sample.value
    return samples


class Prometheus(unittest.TestCase):
    def test_reads_the_file_during_a_run_and_at_its_end(self):
        with tempfile.TemporaryDirectory() as folder:
            path = pathlib.Path(folder, "run.prom")
            output = pathlib.Path(folder, 'a "run"')
            run_label = ("run", str(output))
            reads = 0
            with subprocess.Popen(
                runs.command(output, 3, f"--prometheus={path}"), stdout=subprocess.DEVNULL
            ) as run:
                while run.poll() is None:
                    if path.exists():
                        samples = samples_in(path)
                        self.assertIn(frozenset([run_label]), samples["arbalest_learners"])
                        reads += 1
                    time.sleep(0.005)
            self.assertEqual(run.returncode, 0)
            self.assertGreater(reads, 0)
            samples = samples_in(path)
            last = runs.rows(output, "epoch")[-1]
            labels = frozenset([run_label])
            self.assertEqual(samples["arbalest_test_accuracy"][labels], last["test_accuracy"])
            self.assertEqual(samples["arbalest_replica_spread"][labels], last["replica_spread"])
            self.assertAlmostEqual(samples["arbalest_epochs"][labels], 3.0, delta=0.01)  # ends between rounds
            self.assertEqual(samples["arbalest_learners"][labels], 2.0)
            states = {dict(key)["status"]: value for key, value in samples["arbalest_run_status"].items()}
            self.assertEqual([status for status, value in states.items() if value == 1.0], ["completed"])
            self.assertEqual([file.name for file in pathlib.Path(folder).iterdir() if file.is_file()], ["run.prom"])


if __name__ == "__main__":
    unittest.main()
