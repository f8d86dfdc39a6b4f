"""Tests bench/gpu/kernel_rates.py: GFLOP/s of the candidates of kernels, from `arbalest inspect --timings --json`."""

import sys
import unittest

from gpu import kernel_rates

CONVOLUTION = ("convolution of input 32x20x12x12, 50 filters of 5x5 in 1 groups, stride 1x1, padding 0x0, dilation 1x1, "
               "with bias, FP32, {}")
FORWARD = 2 * 32 * 50 * 8 * 8 * 20 * 5 * 5  # of this convolution


def choice(question, answer, **microseconds):
    return {"device": "cuda:0", "question": question, "answer": answer, "note": "",
            "candidates": [{"name": name, "microseconds": time} for name, time in microseconds.items()]}


class KernelRatesTest(unittest.TestCase):
    def only_row(self, question, answer="library", **microseconds):
        rows = kernel_rates.rates([choice(question, answer, **microseconds or {"own": 12.5, "library": 10.0})])
        self.assertEqual(len(rows), 1)
        return rows[0]

    def test_flops_count_passes_and_replicas(self):
        for mode, times in (("training, 1 replica", 3), ("training without input gradient, 1 replica", 2),
                            ("training, weights with channels last, 8 replicas", 24)):
            row = self.only_row(CONVOLUTION.format(mode))
            self.assertEqual(row["flops"], times * FORWARD)
            self.assertEqual(row["chosen"], "library")
            self.assertEqual([(one["name"], one["microseconds"]) for one in row["candidates"]],
                             [("own", 12.5), ("library", 10.0)])
            self.assertAlmostEqual(row["candidates"][1]["gflop_per_second"], times * FORWARD / 10e-6 / 1e9)

    def test_an_inference_has_times_and_no_rate(self):
        row = self.only_row(CONVOLUTION.format("inference"))
        self.assertEqual((row["replicas"], row["flops"]), (None, None))
        self.assertIn("| inference |  | own: 12.5; library: 10.0 | library |", kernel_rates.table([row])[-1])

    def test_extents_of_an_output(self):
        text = "convolution of input 1x4x9x7, 6 filters of 3x2 in 2 groups, stride 2x1, padding 1x0{}, dilation 1x2"
        # Height (9 + 2 - 2 - 1) / 2 + 1 = 5, width (7 - 2 - 1) / 1 + 1 = 5.
        self.assertEqual(kernel_rates.forward_flops(text.format("")), 2 * 6 * 5 * 5 * 2 * 3 * 2)
        self.assertEqual(kernel_rates.forward_flops(text.format(" and 0x1 behind")), 2 * 6 * 5 * 6 * 2 * 3 * 2)

    def test_dense_layers(self):
        row = self.only_row("dense layer of input 32x50x4x4 with channels last, 500 units, with bias and activation, BF16, "
                            "training, 4 replicas", "own", own=3.0, another=None)
        self.assertEqual(row["flops"], 3 * 4 * 2 * 32 * 800 * 500)
        self.assertEqual([one["name"] for one in row["candidates"]], ["own"])

    def test_passes_and_choices_without_times_are_left_out(self):
        of_pass = "input 2x1x28x28, 20 filters of 5x5 in 1 groups, stride 1x1, padding 0x0, dilation 1x1, FP32: output"
        self.assertEqual(kernel_rates.rates([
            choice(of_pass, "FFT, no tensor cores", **{"FFT, no tensor cores": 3.0}),
            choice(CONVOLUTION.format("training, 1 replica"), "library")]), [])


if __name__ == "__main__":
    sys.exit(unittest.main())
