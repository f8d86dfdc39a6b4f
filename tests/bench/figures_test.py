"""Tests the drawing of the paper's figures: bench/figures."""

import json
import pathlib
import subprocess
import sys
import tempfile
import unittest
import xml.etree.ElementTree as xml

from figures.chart import Axis, linear_ticks
from tiny_data import ROOT

SVG = "{http://www.w3.org/2000/svg}"


def case(batch_size, learners, rate, seconds):
    return {
        "batch_size": batch_size,
        "images_per_second": {"median": rate},
        "time_to_accuracy_seconds": {"median": seconds},
        "runs": [{"learners": learners}, {"outcome": "died"}],
    }


CASES = [
    case(16, 1, 100.0, 8.0),
    case(16, 4, 250.0, 4.0),
    case(64, 1, 200.0, None),
    case(64, 4, 300.0, 2.0),
]


class Figures(unittest.TestCase):
    def setUp(self):
        folder = tempfile.TemporaryDirectory()
        self.addCleanup(folder.cleanup)
        self.folder = pathlib.Path(folder.name)

    def write(self, name, content):
        path = self.folder / name
        path.write_text(json.dumps(content))
        return str(path)

    def bench(self, cases=None):
        return self.write("bench.json", {"target_accuracy": 0.9, "cases": CASES if cases is None else cases})

    def draw(self, *words, exit_code=0):
        command = [sys.executable, str(ROOT / "bench" / "figures" / "draw.py"), *words]
        done = subprocess.run(command, capture_output=True, text=True, check=False)
        self.assertEqual(done.returncode, exit_code, done.stderr)
        return xml.fromstring(done.stdout) if exit_code == 0 else done.stderr

    def texts(self, svg):
        return [text.text for text in svg.iter(f"{SVG}text")]

    def dots(self, svg):
        """(x, y) by color."""
        found = {}
        for dot in svg.iter(f"{SVG}circle"):
            found.setdefault(dot.get("class"), []).append((float(dot.get("cx")), float(dot.get("cy"))))
        return list(found.values())

    def test_gain(self):
        svg = self.draw("gain", self.bench())
        self.assertLessEqual({"1 learner", "4 learners", "16", "64"}, set(self.texts(svg)))
        one, four = self.dots(svg)
        zero = 360.0
        self.assertEqual(one[0][1], one[1][1])
        self.assertAlmostEqual((zero - four[0][1]) / (zero - one[0][1]), 2.5, places=2)
        self.assertAlmostEqual((zero - four[1][1]) / (zero - one[1][1]), 1.5, places=2)
        self.assertIn("one learner and with more", self.draw("gain", self.bench(CASES[:1]), exit_code=2))

    def test_time_names_what_has_not_reached_the_target(self):
        svg = self.draw("time", self.bench())
        one, four = self.dots(svg)
        self.assertEqual((len(one), len(four)), (1, 2))
        notes = [text for text in svg.iter(f"{SVG}text") if float(text.get("y", 0)) > 420]
        self.assertEqual([note.text for note in notes], ["Not reached by half of the runs or more:", "1 learner: b = 64"])
        self.assertGreater(float(svg.get("viewBox").split()[3]), float(notes[-1].get("y")))
        self.assertIn("reach the target", self.draw("time", self.bench([CASES[2]]), exit_code=2))

    def test_a_note_stands_below_the_figure(self):
        for figure in ("gain", "time"):
            svg = self.draw(figure, self.bench(), "--note", "b = 16: half the rate", "--note", "two")
            notes = [text for text in svg.iter(f"{SVG}text") if float(text.get("y", 0)) > 420]
            self.assertEqual([note.text for note in notes][-2:], ["b = 16: half the rate", "two"])
            self.assertGreater(float(svg.get("viewBox").split()[3]), float(notes[-1].get("y")))

    def test_a_later_file_takes_the_place_of_the_same_case_before(self):
        again = self.write("again.json", {"target_accuracy": 0.9, "cases": [case(64, 1, 100.0, 3.0)]})
        one, four = self.dots(self.draw("gain", self.bench(), again))
        self.assertEqual((len(one), len(four)), (2, 2))
        self.assertAlmostEqual((360.0 - four[1][1]) / (360.0 - one[1][1]), 3.0, places=2)
        self.assertEqual(len(self.dots(self.draw("time", self.bench(), again))[0]), 2)

    def test_viewers_without_css_variables_show_colors(self):
        committed = [xml.parse(path).getroot() for path in (ROOT / "bench" / "figures").glob("*.svg")]
        self.assertGreaterEqual(len(committed), 5)
        for svg in [self.draw("gain", self.bench()), *committed]:
            shapes = [shape for kind in ("path", "circle", "rect") for shape in svg.iter(f"{SVG}{kind}")]
            self.assertGreater(len(shapes), 3)
            for shape in shapes:
                color = shape.get("stroke") if shape.tag.endswith("path") else shape.get("fill")
                self.assertRegex(color or "none", "^#[0-9a-f]{3,6}$", shape.get("class"))

    def test_curves_differ_without_color(self):
        curves = [p for p in self.draw("gain", self.bench()).iter(f"{SVG}path") if "curve" in p.get("class")]
        # Each of the two series has a curve and the same curve in the legend.
        dashes = [curve.get("stroke-dasharray") for curve in curves]
        self.assertEqual(dashes, [None, None, "9 4", "9 4"])

    def test_files_that_are_something_else(self):
        self.assertIn("No such file", self.draw("gain", str(self.folder / "absent"), exit_code=2))
        for content in (b'{"models": []}', b'{"cases": []', b"\xff\xfe\x00"):
            other = self.folder / "other.json"
            other.write_bytes(content)
            said = self.draw("gain", str(other), exit_code=2)
            self.assertRegex(said, "^error: .*other.json: .*not the JSON")
        self.assertIn("no such run", self.draw("time", "--learners", "3", self.bench(), exit_code=2))


class Axes(unittest.TestCase):
    def test_ticks_enclose_the_values(self):
        self.assertEqual(linear_ticks(1.0), [0.0, 0.2, 0.4, 0.6, 0.8, 1.0])
        self.assertEqual(linear_ticks(2.51)[-1], 3.0)
        self.assertEqual(Axis("b", [24, 100], doubling=True).ticks, [16, 32, 64, 128])
        self.assertEqual(Axis("b", [16], doubling=True).ticks, [16, 32])
        self.assertAlmostEqual(Axis("b", [16, 256], doubling=True).share(64), 0.5)


if __name__ == "__main__":
    unittest.main()
