"""Tests processor time of turns: bench/comparison/processor_time.py, and its table."""

import os
import subprocess
import sys
import unittest

from comparison.page import by_processor_time, headline
from comparison.processor_time import Meter, median_of, paired, per_core, used_by

# Uses 0.3 s of processor time in itself, and as much in a child that ends and in one that stays.
PROGRAM = """import os, time
def burn():
  while time.process_time() < 0.3: pass
def child(stays):
  pid = os.fork()
  if pid == 0:
    burn()
    if stays:
      os.write(1, b"stays ")
      time.sleep(1000)
    os._exit(0)
  return pid
os.waitpid(child(False), 0)
child(True)
burn()
os.write(1, b"burnt ")
time.sleep(1000)
"""


def side(name, rates, cores, is_ours=False):
    return {"name": name, "is_ours": is_ours, "rates": rates, "cores": cores, "runs": [], "got": None}


class ProcessorTime(unittest.TestCase):
    def test_it_includes_children_that_run_and_that_have_ended(self):
        process = subprocess.Popen([sys.executable, "-c", PROGRAM], stdout=subprocess.PIPE, start_new_session=True)
        self.addCleanup(process.stdout.close)
        self.addCleanup(process.wait)
        self.addCleanup(os.killpg, process.pid, 9)
        said = b""
        while said.count(b" ") < 2:
            said += os.read(process.stdout.fileno(), 100)
        self.assertGreaterEqual(used_by(process.pid), 0.85)  # three times 0.3, to hundredths of a second
        meter = Meter(process.pid)
        self.assertEqual(meter.stop().keys(), {"own", "others"})

    def test_of_a_process_that_has_ended_there_is_none(self):
        process = subprocess.Popen([sys.executable, "-c", "input()"], stdin=subprocess.PIPE)
        meter = Meter(process.pid)
        process.communicate(b"\n")
        self.assertIsNone(used_by(process.pid))
        self.assertIsNone(meter.stop())


class Turns(unittest.TestCase):
    ours = side("Arbalest", [100.0, 60.0, 90.0], [{"own": 2.0, "others": 0.0}, {"own": 1.0, "others": 1.0}, None], True)
    theirs = side("PyTorch", [40.0, 30.0, 50.0], [{"own": 2.0, "others": 0.0}, {"own": 1.5, "others": 0.5}, None])

    def test_ratios_are_of_turns_that_were_measured_on_both_sides(self):
        self.assertEqual(per_core(self.ours), [50.0, 60.0, None])
        self.assertEqual(per_core(self.theirs), [20.0, 20.0, None])
        self.assertEqual(paired(self.ours, self.theirs), [2.5, 3.0])
        self.assertEqual(median_of(self.ours, "others"), 0.5)

    def test_the_table_names_cores_and_neighbors(self):
        said = "\n".join(by_processor_time([self.ours, self.theirs]))
        self.assertIn("| Arbalest | 55.00 (52.50 to 57.50) |  | 1.50 | 0.50 |", said)
        self.assertIn("| PyTorch | 20.00 (20.00 to 20.00) | 2.75 (2.62 to 2.88) | 1.75 | 0.25 |", said)
        model = {"model": "lenet", "targets": [], "sides": [self.ours, self.theirs]}
        self.assertIn("; by processor time 2.75 (2.62 to 2.88)", headline(model)[0])

    def test_without_measurements_there_is_no_table(self):
        self.assertEqual(by_processor_time([side("Arbalest", [1.0], [], True)]), [])


if __name__ == "__main__":
    unittest.main()
