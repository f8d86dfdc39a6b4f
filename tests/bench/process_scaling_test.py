"""Tests the model of bench/process_scaling, and its report, on numbers that can be worked out by hand."""

import json
import pathlib
import re
import subprocess
import sys
import tempfile
import unittest
import xml.etree.ElementTree as xml

from process_scaling.measure import buckets
from process_scaling.model import (CHUNK, MOST_RECEIVED, SHORTEST_CHUNK, WINDOW, Job, Link, Machine, all_reduce,
                                   chunk_of, efficiency, fit, step_seconds, traffic)
from tiny_data import ROOT

SVG = "{http://www.w3.org/2000/svg}"
RESULTS = ROOT / "bench" / "results"
WHOLE = Machine(cores=4, processes=1)  # a second of work costs a quarter of a second
CORE = Machine(cores=2, processes=2)
LINK = Link("made up", latency=0.001, per_message=0.01, per_byte=1e-6)


class Model(unittest.TestCase):
    def test_constants_are_those_of_the_all_reduce(self):
        text = (ROOT / "engine/process/operations/all_reduce.h").read_text(encoding="utf-8")
        for value, pattern in ((CHUNK, r"chunk = std::size_t\{1\} << (\d+);"),
                               (MOST_RECEIVED, r"kMostReceived = std::size_t\{1\} << (\d+);")):
            self.assertEqual(value, 1 << int(re.search(pattern, text).group(1)))
        for value, pattern in ((WINDOW, r"window = (\d+);"), (SHORTEST_CHUNK, r"kShortestChunk = (\d+);")):
            self.assertEqual(value, int(re.search(pattern, text).group(1)))

    def test_traffic(self):
        self.assertEqual(traffic(1000, 2), (2, 4000))  # half of 4,000 bytes goes out as parts, the other half as sums
        self.assertEqual(traffic(1000, 4), (6, 6000))
        self.assertEqual(traffic(4 * CHUNK, 2), (4, 8.0 * 2 * CHUNK))  # a slice has two chunks
        self.assertEqual(traffic(1000, 2, chunk=100), (10, 4000))
        self.assertEqual(chunk_of(256), 4112)
        self.assertEqual(traffic(431080, 256)[0], 510)  # LeNet: a slice is one message of 1,684 floats
        self.assertEqual(traffic(25_557_032, 256)[0], 510 * 25)

    def test_an_all_reduce_takes_two_latencies_and_the_work_or_the_wire(self):
        self.assertEqual(all_reduce(LINK, 1000, 1, CORE).seconds, 0.0)
        found = all_reduce(LINK, 1000, 4, CORE)
        self.assertAlmostEqual(found.work, 6 * 0.01 + 6000e-6)
        self.assertAlmostEqual(found.seconds, 0.002 + found.work)
        slow = LINK.over("slow", 0.005, 8 * 6000)
        self.assertAlmostEqual(all_reduce(slow, 1000, 4, CORE).seconds, 0.012 + 1.0)
        self.assertAlmostEqual(all_reduce(slow, 1000, 4, CORE).work, found.work)
        crowded = Machine(cores=2, processes=4)
        self.assertAlmostEqual(all_reduce(LINK, 1000, 4, crowded).seconds, 0.002 + 2 * found.work)

    def test_sma_hides_the_exchange_but_not_its_work(self):
        work = all_reduce(LINK, 1000, 4, WHOLE).work
        long = Job(1000, [], {"sma": 1.0}, per_byte=0.0)
        self.assertAlmostEqual(step_seconds(long, "sma", LINK, 4, WHOLE), 1.0 + work / 4)
        slow = LINK.over("slow", 0.0, 8 * 6000)
        self.assertAlmostEqual(step_seconds(Job(1000, [], {"sma": 0.1}, 0.0), "sma", slow, 4, WHOLE), 0.002 + 1.0)

    def test_local_sgd_waits_once_in_sixteen_mini_batches(self):
        exchange = all_reduce(LINK, 1000, 4, WHOLE).seconds
        job = Job(1000, [], {"local_sgd": 0.5}, per_byte=0.0)
        self.assertAlmostEqual(step_seconds(job, "local_sgd", LINK, 4, WHOLE), 0.5 + exchange / 16)

    def test_passes_of_one_process_alone_are_fewer(self):
        free = Link("free", latency=0.0, per_message=0.0, per_byte=0.0)
        job = Job(1000, [], {"sma": 1.0, "local_sgd": 1.0}, per_byte=1e-6)
        self.assertAlmostEqual(step_seconds(job, "sma", free, 1, WHOLE), 1.0)
        # 2 learners: 4 (2 + 3) bytes a float in one process, 2 x 4 (1 + 7) in two, which share two cores.
        self.assertAlmostEqual(step_seconds(job, "sma", free, 2, CORE), 1.0 + (64 - 20) / 2 * 1e-3)
        self.assertAlmostEqual(step_seconds(job, "local_sgd", free, 2, CORE), 1.0 + (64 - 20) / 2 * 1e-3 / 16)
        # 1 learner on 4 cores: 4 (1 + 3) alone, 4 (1 + 7) as one of several.
        self.assertAlmostEqual(step_seconds(job, "sma", free, 2, WHOLE), 1.0 + (32 - 16) / 4 * 1e-3)

    def test_s_sgd_hides_all_buckets_but_those_that_are_late(self):
        free = Link("free", latency=0.05, per_message=0.0, per_byte=0.0)  # each bucket takes 0.1 s
        early = Job(1000, [(500, 0.5), (500, 1.0)], {"s_sgd": 0.9}, 0.0)
        self.assertAlmostEqual(step_seconds(early, "s_sgd", free, 2, WHOLE), 0.9 + 0.1)  # only the last is seen
        late = Job(1000, [(500, 0.95), (500, 1.0)], {"s_sgd": 0.9}, 0.0)  # ready at 0.3 + 0.57, then they queue
        self.assertAlmostEqual(step_seconds(late, "s_sgd", free, 2, WHOLE), 0.87 + 0.2)
        work = Link("work", latency=0.0, per_message=0.04, per_byte=0.0)  # 0.08 s a bucket, on one core of four
        self.assertAlmostEqual(step_seconds(early, "s_sgd", work, 2, WHOLE), 0.9 + 2 * 0.02 + 0.08)

    def test_one_process_is_as_fast_as_itself(self):
        job = Job(1000, [(1000, 1.0)], {"sma": 0.1, "s_sgd": 0.2, "local_sgd": 0.3}, 1e-9)
        for scheme in job.seconds:
            self.assertAlmostEqual(efficiency(job, scheme, LINK, 1, WHOLE), 1.0)
            self.assertLess(efficiency(job, scheme, LINK, 2, WHOLE), 1.0)

    def points(self, link):
        counts = [traffic(floats, 2, chunk) for floats in (1000, 100_000, 3_000_000) for chunk in (1024, 65536)]
        return [(messages, sent, 2 * link.latency + messages * link.per_message + sent * link.per_byte)
                for messages, sent in counts]

    def test_fit_finds_the_costs_of_a_link(self):
        for true in (Link("a", 1e-5, 2e-6, 3e-10), Link("b", 0.0, 2e-6, 3e-10), Link("c", 1e-5, 0.0, 3e-10)):
            found = fit("found", self.points(true))
            for cost in ("latency", "per_message", "per_byte"):
                expected = getattr(true, cost)
                self.assertAlmostEqual(getattr(found, cost), expected, delta=1e-4 * max(expected, 1e-9))

    def test_fit_gives_no_negative_cost(self):
        cheaper = [(messages, sent, 1e-9 * sent - 1e-7 * messages) for messages, sent, _ in self.points(LINK)]
        found = fit("found", cheaper)
        self.assertEqual(found.per_message, 0.0)
        self.assertGreaterEqual(min(found.latency, found.per_byte), 0.0)


class Buckets(unittest.TestCase):
    def test_the_first_bucket_is_an_eighth_and_the_first_layer_joins_the_last(self):
        layers = [(10, 30), (0, 10), (40, 20), (0, 0), (30, 30), (5, 10)]  # (parameters, operations), forward
        self.assertEqual(buckets(layers, size=160), [(5, 0.1), (70, 0.6), (10, 1.0)])
        self.assertEqual(buckets(layers, size=1600), [(75, 0.6), (10, 1.0)])
        self.assertEqual(buckets([(10, 1), (1, 1)], size=8000), [(11, 1.0)])


def rows_of_a_machine():
    """Rows as process_scaling/measure.py writes them, of a machine whose links cost what LINK says."""
    about = {"command": "measure", "commit": "abc", "date": "2026-01-01", "machine": "made up", "load": 0.5}
    rows = [{"part": "models", "model": model, "elements": elements, "buckets": [[elements, 1.0]], **about}
            for model, elements in (("lenet", 1000), ("resnet20", 1000), ("resnet50", 25_000_000))]
    for link in ("shared memory", "TCP"):
        for elements in (1000, 30_000, 3_000_000):
            for chunk in (None, 1024):
                messages, sent = traffic(elements, 2, chunk)
                seconds = 2 * LINK.latency + messages * LINK.per_message + sent * LINK.per_byte
                rows.append({"part": "links", "link": link, "processes": 2, "elements": elements, "chunk": chunk,
                             "seconds": seconds, "memcpy_seconds": 0.0, **about})
    training = {"part": "lenet", "model": "lenet", "batch": 10, "images": 1000, "processor_seconds": [30.0], **about}
    for scheme in ("sma", "s_sgd", "local_sgd"):
        alone = {"scheme": scheme, "link": None, "processes": 1, "learners": 2, "images_per_second": [90.0, 100.0]}
        pair = {"scheme": scheme, "link": "shared memory", "processes": 2, "learners": 1, "images_per_second": [80.0]}
        rows += [{**training, **alone}, {**training, **pair}, {**training, **alone, "part": "resnet20", "model": "resnet20"}]
    rows.append({**training, "part": "resnet50", "model": "resnet50", "processor_seconds": [9e9], "scheme": "sma", "link": None, "processes": 1,
                 "learners": 2, "images_per_second": [2.0]})
    return rows


class Report(unittest.TestCase):
    def setUp(self):
        folder = tempfile.TemporaryDirectory()
        self.addCleanup(folder.cleanup)
        self.folder = pathlib.Path(folder.name)

    def report(self, rows, *words, exit_code=0):
        """Returns the script's output, or its errors if it must fail."""
        path = self.folder / "rows.jsonl"
        path.write_text("".join(json.dumps(row) + "\n" for row in rows), encoding="utf-8")
        command = [sys.executable, str(ROOT / "bench/process_scaling/report.py"), str(path), *words]
        done = subprocess.run(command, capture_output=True, text=True, check=False)
        self.assertEqual(done.returncode, exit_code, done.stderr)
        return done.stdout if exit_code == 0 else done.stderr

    def test_tables(self):
        text = self.report(rows_of_a_machine())
        self.assertIn("| shared memory | 2 | 1000 | 10000.0 | 0.00 | 0 % |", text)
        # One process takes 0.2 s a round. Two add 2 messages and 4,000 bytes: 0.024 s of work, each on its own core.
        self.assertIn("| LeNet | sma | shared memory | 2 | 0.800 | 0.893 | +12 % |", text)
        # 256 machines at 1 Gbit/s: 510 messages take 5.1 s, 7,969 bytes 0.008 s, and each latency 0.001 s and 50 us.
        self.assertIn("| LeNet | 256 | 510 | 0.0 | 0.0 | 5,110.1 | 5,110.0 | 5,110.0 |", text)
        self.assertIn("Predicted share of linear scaling, ResNet-50", text)

    def test_charts_tell_what_is_measured(self):
        self.report(rows_of_a_machine(), "--figures", str(self.folder))
        check = xml.parse(self.folder / "scaling-check.svg")
        # A measured series has a dot in the legend and dots at 1 and 2 processes.
        self.assertEqual(len(list(check.iter(f"{SVG}circle"))), 3 * 3)
        for name in ("lenet", "resnet50"):
            chart = xml.parse(self.folder / f"scaling-{name}.svg")
            self.assertEqual(list(chart.iter(f"{SVG}circle")), [])
            self.assertIn("all predicted", chart.find(f"{SVG}title").text)
            self.assertEqual(sum(shape.get("class").startswith("curve") for shape in chart.iter(f"{SVG}path")), 2 * 6)

    def test_the_page_keeps_what_stands_above_its_tables(self):
        page = self.folder / "page.md"
        page.write_text("# Title\n\nText.\n\n## Tables\n\nold\n", encoding="utf-8")
        self.report(rows_of_a_machine(), "--page", str(page))
        text = page.read_text(encoding="utf-8")
        self.assertTrue(text.startswith("# Title\n\nText.\n\n## Tables\n\nMeasured on made up"))
        self.assertNotIn("old", text)
        page.write_text("# Title\n", encoding="utf-8")
        self.assertIn('no heading "## Tables"', self.report(rows_of_a_machine(), "--page", str(page), exit_code=2))

    def test_missing_and_doubled_rows(self):
        rows = rows_of_a_machine()
        for part in ("models", "links"):
            self.assertIn("measure", self.report([row for row in rows if row["part"] != part], exit_code=2))
        self.assertIn("2 rows of the sizes of lenet", self.report([rows[0], *rows], exit_code=2))


class Committed(unittest.TestCase):
    def test_the_page_has_the_tables_of_its_rows(self):
        pages = [page for page in RESULTS.glob("*-scaling-predictions.md")]
        self.assertTrue(pages)
        for page in pages:
            rows = RESULTS / f"process-scaling-{page.name[:10]}.jsonl"
            command = [sys.executable, str(ROOT / "bench/process_scaling/report.py"), str(rows)]
            done = subprocess.run(command, capture_output=True, text=True, check=True)
            self.assertEqual(page.read_text(encoding="utf-8").partition("## Tables\n")[2].strip(), done.stdout.strip())


if __name__ == "__main__":
    unittest.main()
