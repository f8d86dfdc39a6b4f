"""Batch norm and pooling that files spell out in several nodes are the layers that they mean, or stay what they are.

The files are made by hand, as JAX, TensorFlow and PyTorch write the formulas. Expected values are computed with NumPy in
double precision.
"""

import pathlib
import sys
import tempfile
import unittest

try:
    import numpy as np
except ImportError as missing:
    print(f"skipped: {missing}")
    sys.exit(4)

import onnx_bytes as onnx
import probe
from onnx_bytes import INT64, integer, integers, model, node, tensor, value

RANDOM = np.random.default_rng(3)
CHANNELS, HEIGHT, WIDTH = 3, 5, 4
IMAGES = RANDOM.standard_normal((2, CHANNELS, HEIGHT, WIDTH), np.float32)
MEAN, BIAS = RANDOM.standard_normal((2, CHANNELS)).astype(np.float32)
SCALE, VARIANCE, OTHER = RANDOM.uniform(0.5, 2, (3, CHANNELS)).astype(np.float32)
EPSILON = 0.25  # exact in float32
LIMIT = 1e-6  # relative norm


def per_channel(numbers):
    return np.float64(numbers).reshape(CHANNELS, 1, 1)


def normalized(scale=SCALE, bias=BIAS):
    deviation = np.sqrt(per_channel(VARIANCE) + EPSILON)
    return (IMAGES - per_channel(MEAN)) / deviation * per_channel(scale) + per_channel(bias)


# Each spelling: nodes from "x" to "z".
DEVIATION = [node("Add", ["variance", "epsilon"], "v"), node("Sqrt", ["v"], "d")]
SPELLINGS = {
    "JAX": [*DEVIATION, node("Div", ["one", "d"], "r"), node("Mul", ["r", "scale"], "s"), node("Neg", ["mean"], "n"),
            node("Mul", ["n", "s"], "p"), node("Add", ["p", "bias"], "t"), node("Mul", ["x", "s"], "y"),
            node("Add", ["y", "t"], "z")],
    "TensorFlow": [*DEVIATION, node("Reciprocal", ["d"], "r"), node("Mul", ["r", "scale"], "s"),
                   node("Mul", ["mean", "s"], "p"), node("Sub", ["bias", "p"], "t"), node("Mul", ["s", "x"], "y"),
                   node("Add", ["t", "y"], "z")],
    "PyTorch": [*DEVIATION, node("Reciprocal", ["d"], "r"), node("Mul", ["r", "scale"], "s"), node("Sub", ["x", "mean"], "c"),
                node("Mul", ["c", "s"], "y"), node("Add", ["y", "bias"], "z")],
    "divisions": [*DEVIATION, node("Sub", ["x", "mean"], "c"), node("Div", ["c", "d"], "q"), node("Mul", ["scale", "q"], "y"),
                  node("Add", ["bias", "y"], "z")],
    "a power": [node("Add", ["epsilon", "variance"], "v"), node("Pow", ["v", "half"], "r"), node("Sub", ["x", "mean"], "c"),
                node("Mul", ["scale", "c"], "q"), node("Mul", ["q", "r"], "y"), node("Add", ["y", "bias"], "z")],
    "a difference at the end": [*DEVIATION, node("Div", ["scale", "d"], "s"), node("Mul", ["mean", "s"], "p"),
                                node("Sub", ["p", "bias"], "t"), node("Mul", ["x", "s"], "y"), node("Sub", ["y", "t"], "z")],
}


def constants():
    names = {"mean": MEAN, "variance": VARIANCE, "scale": SCALE, "bias": BIAS, "other": OTHER}
    tensors = [tensor(name, [CHANNELS, 1, 1], numbers) for name, numbers in names.items()]
    numbers = {"epsilon": EPSILON, "one": 1.0, "half": -0.5}
    return tensors + [tensor(name, [], [number]) for name, number in numbers.items()]


class Imported(unittest.TestCase):
    """Imports models of nodes from "x" to "z"."""

    IMAGE, BEFORE, TENSORS = "x", [], []  # the model's input, and what makes "x" of it

    def setUp(self):
        folder = tempfile.TemporaryDirectory()
        self.addCleanup(folder.cleanup)
        self.folder = pathlib.Path(folder.name)
        self.run_ = self.folder / "run"

    def import_(self, nodes, tensors, code=0):
        """Returns what is said, and the job."""
        file = self.folder / "model.onnx"
        file.write_bytes(model([*self.BEFORE, *nodes, node("Flatten", ["z"], "features")], [*self.TENSORS, *tensors],
                               inputs=[value(self.IMAGE, ["n", CHANNELS, HEIGHT, WIDTH])],
                               outputs=[value("features", ["n", "f"])], opset=18))
        said = probe.call(probe.PROGRAM, "import", file, "--output", self.run_, code=code)
        return said, (self.run_ / "job.txtpb").read_text() if code == 0 else ""

    def check(self, expected, images=IMAGES):
        output = probe.output_of(self.run_, images)
        self.assertLess(probe.relative_norm(output, np.ascontiguousarray(expected)), LIMIT)


class NormsImport(Imported):
    def test_spellings_of_batch_norm(self):
        for name, nodes in SPELLINGS.items():
            with self.subTest(name):
                self.setUp()
                said, job = self.import_(nodes, constants())
                self.assertIn("batch_norm { epsilon: 0.25 }", " ".join(job.split()))
                self.assertNotIn("conv {", job)
                self.assertNotIn("scales channels", said)
                self.check(normalized())

    def test_batch_norm_without_scale_and_bias(self):
        shift = [node("Neg", ["mean"], "n"), node("Mul", ["n", "r"], "t"), node("Mul", ["x", "r"], "y"),
                 node("Add", ["y", "t"], "z")]
        _, job = self.import_([*DEVIATION, node("Reciprocal", ["d"], "r"), *shift], constants())
        self.assertIn("batch_norm {", job)
        self.check(normalized(np.ones(CHANNELS), np.zeros(CHANNELS)))

    def test_what_is_read_inside_of_batch_norm_is_imported_too(self):
        nodes = [*SPELLINGS["PyTorch"][:-1], node("Add", ["y", "bias"], "w"), node("Add", ["w", "y"], "z")]
        _, job = self.import_(nodes, constants())
        self.assertIn("batch_norm {", job)
        self.check(2 * normalized() - per_channel(BIAS))

    def test_other_arithmetic_stays_what_it_is(self):
        def changed(name, old, new):
            return [new if each == old else each for each in SPELLINGS[name]]

        deviation = np.sqrt(per_channel(VARIANCE) + EPSILON)
        factor = per_channel(SCALE) / deviation
        product, sign = node("Mul", ["n", "s"], "p"), node("Neg", ["mean"], "n")
        cases = [  # the mean times another factor than x's, the mean added, a factor that is multiplied and no divisor
            (changed("JAX", product, node("Mul", ["n", "other"], "p")),
             IMAGES * factor - per_channel(MEAN) * per_channel(OTHER) + per_channel(BIAS)),
            (changed("JAX", sign, node("Identity", ["mean"], "n")),
             (IMAGES + per_channel(MEAN)) * factor + per_channel(BIAS)),
            (changed("divisions", node("Div", ["c", "d"], "q"), node("Mul", ["c", "d"], "q")),
             (IMAGES - per_channel(MEAN)) * deviation * per_channel(SCALE) + per_channel(BIAS)),
        ]
        for nodes, expected in cases:
            self.setUp()
            _, job = self.import_(nodes, constants())
            self.assertNotIn("batch_norm", job)
            self.check(expected)

    def test_operators_of_other_domains_are_no_formulas(self):
        other = node("Add", ["y", "bias"], "z", name="last") + onnx.block(7, "com.example")
        said, _ = self.import_([*SPELLINGS["PyTorch"][:-1], other], constants(), code=3)
        self.assertIn("Add 'last': it is an operator of 'com.example'", said)
        root = node("Sqrt", ["v"], "d", name="root") + onnx.block(7, "com.example")
        said, _ = self.import_([SPELLINGS["PyTorch"][0], root, *SPELLINGS["PyTorch"][2:]], constants(), code=3)
        self.assertIn("Sqrt 'root': it is an operator of 'com.example'", said)

    def test_a_convolution_s_output_that_is_scaled_gets_a_warning(self):
        kernel = np.eye(CHANNELS, dtype=np.float32)
        nodes = [node("Conv", ["x", "kernel"], "c"), node("Mul", ["c", "scale"], "y"), node("Add", ["y", "bias"], "z")]
        said, _ = self.import_(nodes, [*constants(), tensor("kernel", [CHANNELS, CHANNELS, 1, 1], kernel.ravel())])
        self.assertIn("scales channels by constants, as exporters write batch norm", said)
        self.check(IMAGES * per_channel(SCALE) + per_channel(BIAS))


def lists(**entries):
    return [tensor(name, [len(values)], values, INT64) for name, values in entries.items()]


def unsqueezed(name, result):
    return [node("Unsqueeze", [name, "first"], f"{result}0"), node("Unsqueeze", [f"{result}0", "second"], result)]


def windows(images, size):
    """The windows of `size` x `size` pixels, with that stride and a row and a column of NaN behind."""
    padded = np.pad(np.float64(images), ((0, 0), (0, 0), (0, images.shape[2] % size), (0, images.shape[3] % size)),
                    constant_values=np.nan)
    batch, channels, height, width = padded.shape
    return padded.reshape(batch, channels, height // size, size, width // size, size)


class WindowsImport(Imported):
    """A model needs parameters, so that a convolution that changes nothing comes first."""

    IMAGE, BEFORE = "image", [node("Conv", ["image", "same"], "x")]
    TENSORS = [tensor("same", [CHANNELS, CHANNELS, 1, 1], np.eye(CHANNELS, dtype=np.float32).ravel())]
    AXES = lists(first=[0], second=[1], both=[0, 1])

    def test_windows_with_two_more_dimensions(self):
        for order, window in (("first", [1, 1, 2, 2]), ("last", [1, 2, 2, 1])):
            with self.subTest(order):
                self.setUp()
                pads = [0, 0, 1, 0] if order == "first" else [0, 1, 0, 0]  # behind; the width is even
                before = [] if order == "first" else [node("Transpose", ["x"], "t", integers("perm", [0, 2, 3, 1]))]
                after = [] if order == "first" else [node("Transpose", ["w"], "z", integers("perm", [0, 3, 1, 2]))]
                source, result = ("x", "z") if order == "first" else ("t", "w")
                pool = node("MaxPool", ["u"], "p", integers("kernel_shape", window), integers("strides", window),
                            integers("pads", [0] * 4 + pads))
                _, job = self.import_([*before, *unsqueezed(source, "u"), pool, node("Squeeze", ["p", "both"], result), *after],
                                      self.AXES)
                self.assertIn("max_pool {", job)
                self.check(np.nanmax(windows(IMAGES, 2), axis=(3, 5)))

    def average(self, height):
        """Sums of windows that reach over the last row, divided by the number of pixels in images of this height."""
        options = [integers("strides", [1, 1, 2, 2]), integers("pads", [0, 0, 0, 0, 0, 0, 1, 0])]
        counts = [node("ConstantOfShape", ["extents"], "ones", onnx.block(1, "value") +
                       onnx.block(5, tensor("", [1], [1.0])) + onnx.number(20, 4)),
                  *unsqueezed("ones", "v"), node("Conv", ["v", "kernel"], "k", *options), node("Squeeze", ["k", "both"], "count")]
        sums = [*unsqueezed("x", "u"), node("Conv", ["u", "kernel"], "s", *options), node("Squeeze", ["s", "both"], "sum")]
        tensors = [*self.AXES, *lists(extents=[1, 1, height, WIDTH]), tensor("kernel", [1, 1, 1, 1, 2, 2], [1.0] * 4)]
        return [*counts, *sums, node("Div", ["sum", "count"], "z", name="mean")], tensors

    def test_means_that_do_not_count_padding(self):
        _, job = self.import_(*self.average(HEIGHT))
        self.assertIn("average_pool {", job)
        self.assertNotIn("count_padding", job)
        self.check(np.nanmean(windows(IMAGES, 2), axis=(3, 5)))

    def test_counts_of_images_of_another_size_are_refused(self):
        said, _ = self.import_(*self.average(HEIGHT + 1), code=3)  # 6 rows and one of padding give 3 windows, too
        self.assertIn("must give each example", said)

    def test_sums_that_are_divided_by_a_number(self):
        options = [integers("strides", [1, 1, 2, 2]), integers("pads", [0, 0, 0, 0, 0, 0, 1, 0])]
        sums = [*unsqueezed("x", "u"), node("Conv", ["u", "kernel"], "s", *options), node("Squeeze", ["s", "both"], "sum")]
        for divisor, code in ((4.0, 0), (3.0, 3)):
            self.setUp()
            tensors = [*self.AXES, tensor("kernel", [1, 1, 1, 1, 2, 2], [1.0] * 4), tensor("four", [], [divisor])]
            _, job = self.import_([*sums, node("Div", ["sum", "four"], "z")], tensors, code=code)
            if code == 0:
                self.assertIn("count_padding: true", job)
                self.check(np.nan_to_num(windows(IMAGES, 2)).mean(axis=(3, 5)))

    def test_the_largest_pixel(self):
        for keeps in (0, 1):
            self.setUp()
            nodes = [node("Transpose", ["x"], "t", integers("perm", [0, 2, 3, 1])),
                     node("ReduceMax", ["t", "pixels"], "z", integer("keepdims", keeps))]
            self.import_(nodes, lists(pixels=[1, 2]))
            self.check(IMAGES.max(axis=(2, 3)))

    def test_bounds_of_numbers(self):
        bounds = [tensor("zero", [], [0.0]), tensor("six", [], [6.0]), tensor("ten", [], [10.0])]
        images = 5 * IMAGES
        _, job = self.import_([node("Max", ["zero", "x"], "z")], bounds)
        self.assertIn("relu {", job)
        self.check(np.maximum(images, 0), images)
        self.setUp()
        _, job = self.import_([node("Max", ["x", "zero"], "m"), node("Min", ["m", "six"], "z")], bounds)
        self.assertIn("relu6 {", job)
        self.check(np.clip(images, 0, 6), images)
        self.setUp()
        said, _ = self.import_([node("Max", ["x", "zero"], "m"), node("Min", ["m", "ten"], "z", name="ten")], bounds, code=3)
        self.assertIn("Min 'ten'", said)

    def test_pads_of_some_axes(self):
        """An axis below 0 counts from behind."""
        pool = [integers("kernel_shape", [2, 2]), integers("strides", [2, 2])]
        for axes, pads in (([2], [0, 1]), ([-2], [0, 1]), ([-1, -2], [0, 0, 0, 1])):
            with self.subTest(axes):
                self.setUp()
                pad = node("Pad", ["x", "pads", "", "axes"], "p")
                _, job = self.import_([pad, node("AveragePool", ["p"], "z", *pool)], lists(pads=pads, axes=axes))
                self.assertIn("average_pool {", job)
                self.check(np.nan_to_num(windows(IMAGES, 2)).mean(axis=(3, 5)))

    def test_edges_that_are_repeated(self):
        """They never exceed the largest pixel of a window that holds pixels of the edge."""
        edge = onnx.block(1, "mode") + onnx.block(4, "edge") + onnx.number(20, 3)
        pad = node("Pad", ["x", "pads"], "p", edge, name="edges")
        pool = [integers("kernel_shape", [2, 2]), integers("strides", [2, 2])]
        _, job = self.import_([pad, node("MaxPool", ["p"], "z", *pool)], lists(pads=[0, 0, 0, 0, 0, 0, 1, 0]))
        self.assertIn("max_pool {", job)
        self.check(np.nanmax(windows(IMAGES, 2), axis=(3, 5)))
        for rows, kind in ((2, "MaxPool"), (1, "AveragePool")):
            self.setUp()
            nodes = [pad, node(kind, ["p"], "z", *pool, name="pool")]
            said, _ = self.import_(nodes, lists(pads=[0, 0, 0, 0, 0, 0, rows, 0]), code=3)
            self.assertIn(f"{kind} 'pool': it reads an image that is padded with", said)


if __name__ == "__main__":
    unittest.main()
