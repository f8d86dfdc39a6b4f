"""Tests bench/gpu/kernel_rates.py: GFLOP/s of the candidates of kernels, from the lines of `arbalest inspect --timings`."""

import sys
import unittest

from gpu import kernel_rates

CONVOLUTION = ("cuda:0: convolution of input 32x20x12x12, 50 filters of 5x5 in 1 groups, stride 1x1, padding 0x0, dilation 1x1, "
               "with bias, FP32, {}: library (own tiled product 12.5 us, library 10.0 us)")
FORWARD = 2 * 32 * 50 * 8 * 8 * 20 * 5 * 5  # of this convolution


class KernelRatesTest(unittest.TestCase):
    def only_row(self, line):
        rows = kernel_rates.rates([line])
        self.assertEqual(len(rows), 1)
        return rows[0]

    def test_flops_count_passes_and_replicas(self):
        for mode, times in (("training, 1 replica", 3), ("training without input gradient, 1 replica", 2),
                            ("training, weights with channels last, 8 replicas", 24)):
            row = self.only_row(CONVOLUTION.format(mode))
            self.assertEqual(row["flops"], times * FORWARD)
            self.assertEqual(row["chosen"], "library")
            self.assertEqual([(one["name"], one["microseconds"]) for one in row["candidates"]],
                             [("own tiled product", 12.5), ("library", 10.0)])
            self.assertAlmostEqual(row["candidates"][1]["gflop_per_second"], times * FORWARD / 10e-6 / 1e9)

    def test_an_inference_has_times_and_no_rate(self):
        row = self.only_row(CONVOLUTION.format("inference"))
        self.assertEqual((row["replicas"], row["flops"]), (None, None))
        self.assertIn("| inference |  | own tiled product: 12.5; library: 10.0 | library |", kernel_rates.table([row])[-1])

    def test_extents_of_an_output(self):
        text = "convolution of input 1x4x9x7 with channels last, 6 filters of 3x2 in 2 groups, stride 2x1, padding 1x0{}, dilation 1x2"
        # Height (9 + 2 - 2 - 1) / 2 + 1 = 5, width (7 - 2 - 1) / 1 + 1 = 5.
        self.assertEqual(kernel_rates.forward_flops(text.replace(" with channels last", "").format("")), 2 * 6 * 5 * 5 * 2 * 3 * 2)
        behind = text.replace(" with channels last", "").format(" and 0x1 behind")
        self.assertEqual(kernel_rates.forward_flops(behind), 2 * 6 * 5 * 6 * 2 * 3 * 2)

    def test_dense_layers(self):
        row = self.only_row("cuda:0: dense layer of input 32x50x4x4 with channels last, 500 units, with bias and activation, BF16, "
                            "training, 4 replicas: own tiled product (own tiled product 3.0 us); another did not fit: 5.0 us (late)")
        self.assertEqual(row["flops"], 3 * 4 * 2 * 32 * 800 * 500)
        self.assertEqual([one["name"] for one in row["candidates"]], ["own tiled product"])

    def test_lines_without_times_are_left_out(self):
        self.assertEqual(kernel_rates.rates([
            "cuda:0: input 2x1x28x28, 20 filters of 5x5 in 1 groups, stride 1x1, padding 0x0, dilation 1x1: output: FFT, "
            "no tensor cores, workspace 256 bytes",
            CONVOLUTION.format("training, 1 replica").split(" (")[0]]), [])


if __name__ == "__main__":
    sys.exit(unittest.main())
