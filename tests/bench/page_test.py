"""Opens bench.html in a real browser, in light and dark mode, and checks contrast. Skipped (4) without Chromium.
"""

import base64
import json
import os
import pathlib
import re
import shutil
import subprocess
import sys
import tempfile
import unittest

ROOT = pathlib.Path(__file__).resolve().parents[2]
BROWSER = shutil.which("chromium") or shutil.which("chromium-browser") or shutil.which("google-chrome")
SCHEMES = {"dark": 0, "light": 1}  # Blink's PreferredColorScheme

# Replaces the page by the browser's results. Contrast is WCAG's: (lighter + 0.05) / (darker + 0.05).
PROBE = """<script>
const luminance = color => color.match(/[\\d.]+/g).slice(0, 3).map(c => c / 255)
  .map(c => c <= 0.04045 ? c / 12.92 : ((c + 0.055) / 1.055) ** 2.4)
  .reduce((sum, c, i) => sum + c * [0.2126, 0.7152, 0.0722][i], 0);
const ground = luminance(getComputedStyle(document.body).backgroundColor);
const contrast = color => { const l = luminance(color);
  return (Math.max(l, ground) + 0.05) / (Math.min(l, ground) + 0.05); };
const all = selector => [...document.querySelectorAll(selector)];
const leaves = e => { const box = e.getBoundingClientRect(), frame = e.ownerSVGElement.getBoundingClientRect();
  return box.left < frame.left - 1 || box.right > frame.right + 1 || box.top < frame.top - 1 || box.bottom > frame.bottom + 1; };
const overlap = (a, b) => a.left < b.right - 1 && b.left < a.right - 1 && a.top < b.bottom - 1 && b.top < a.bottom - 1;
const overlapping = chart => { const texts = [...chart.querySelectorAll("text")].map(e => [e.textContent, e.getBoundingClientRect()]);
  return texts.flatMap((a, i) => texts.slice(i + 1).filter(b => overlap(a[1], b[1])).map(b => [a[0], b[0]])); };
const pixels = e => parseFloat(getComputedStyle(e).fontSize) * e.getScreenCTM().a;
const upright = all("svg text").filter(e => !e.hasAttribute("transform"));
const seen = {
  overlapping: all("svg").flatMap(overlapping), smallest: Math.min(...upright.map(pixels)),
  ground, charts: all("svg").filter(e => e.getBoundingClientRect().height > 100).length,
  text: all("svg text").length, curves: all("svg path.curve").length,
  leaving: all("svg text, svg path, svg rect, svg circle").filter(leaves).map(e => e.outerHTML),
  text_contrast: Math.min(...all("svg text").map(e => contrast(getComputedStyle(e).fill)),
                          ...all("td, th, p, pre").map(e => contrast(getComputedStyle(e).color))),
  curve_contrast: Math.min(...all("svg path.curve").map(e => contrast(getComputedStyle(e).stroke))),
  overflow: document.documentElement.scrollWidth - document.documentElement.clientWidth,
};
document.body.innerHTML = '<pre id="seen">' + btoa(unescape(encodeURIComponent(JSON.stringify(seen)))) + '</pre>';
</script></body>"""


class PageTest(unittest.TestCase):
    @classmethod
    def setUpClass(cls):
        cls.folder = tempfile.TemporaryDirectory()
        cls.addClassCleanup(cls.folder.cleanup)
        output = pathlib.Path(cls.folder.name) / "bench"
        command = [os.environ["ARBALEST_PROGRAM"], "bench", "configs/logistic-digits.txtpb", "--target", "0.83", "--seeds", "1..2",
                   "--set", "training.max_epochs=2", "--vary", "learners.per_device.fixed=1,2", "--output", output]
        ran = subprocess.run(command, cwd=ROOT, capture_output=True, text=True)
        if ran.returncode not in (0, 9):
            raise RuntimeError(f"exit code {ran.returncode}: {ran.stderr}")
        page = (output / "bench.html").read_text()
        cls.page = pathlib.Path(cls.folder.name) / "probed.html"
        head, end = page.rsplit("</body>", 1)
        cls.page.write_text(head + PROBE + end)

    def look(self, scheme, width):
        command = [BROWSER, "--headless", "--no-sandbox", "--disable-gpu", f"--user-data-dir={self.folder.name}/profile",
                   f"--blink-settings=preferredColorScheme={SCHEMES[scheme]}", f"--window-size={width},1200", "--dump-dom",
                   self.page.as_uri()]
        ran = subprocess.run(command, capture_output=True, text=True, timeout=100)
        found = re.search(r'<pre id="seen">([A-Za-z0-9+/=]+)</pre>', ran.stdout)
        self.assertIsNotNone(found, f"the browser has not run the page: {ran.stdout[-500:]} {ran.stderr[-500:]}")
        return json.loads(base64.b64decode(found[1]))

    def test_it_is_readable_in_light_and_in_dark(self):
        for scheme, width in (("light", 1200), ("dark", 1200), ("light", 500)):
            with self.subTest(scheme=scheme, width=width):
                seen = self.look(scheme, width)
                self.assertEqual(seen["ground"] > 0.5, scheme == "light")
                self.assertGreaterEqual(seen["charts"], 3)
                self.assertGreater(seen["text"], 20)
                self.assertGreaterEqual(seen["curves"], 2)
                self.assertEqual(seen["leaving"], [])
                self.assertEqual(seen["overlapping"], [])
                self.assertGreaterEqual(seen["smallest"], 10.0)
                self.assertGreaterEqual(seen["text_contrast"], 4.5)
                self.assertGreaterEqual(seen["curve_contrast"], 3.0)
                self.assertLessEqual(seen["overflow"], 0)


if __name__ == "__main__":
    if BROWSER is None:
        print("skipped: Chromium is not installed")
        sys.exit(4)
    unittest.main()
