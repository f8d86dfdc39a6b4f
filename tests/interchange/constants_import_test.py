"""What depends on constants only is computed as ONNX defines it. The expected numbers are worked out by hand."""

import array
import os
import pathlib
import resource
import struct
import subprocess
import tempfile
import unittest

import onnx_bytes as onnx
from onnx_bytes import FLOAT, INT64, integer, integers, linear, node, number, tensor

PROGRAM = os.environ["ARBALEST_PROGRAM"]
BOOL = 9
MOST_BYTES = 8 << 30  # of address space


def floats(name, values, dims=None):
    return tensor(name, [len(values)] if dims is None else dims, values)


def ints(name, values, dims=None):
    return tensor(name, [len(values)] if dims is None else dims, values, INT64)


def varfloat(value):
    return struct.pack("<Bf", 2 << 3 | 5, value)


class ConstantsImport(unittest.TestCase):
    def setUp(self):
        folder = tempfile.TemporaryDirectory()
        self.addCleanup(folder.cleanup)
        self.folder = pathlib.Path(folder.name)

    def run_import(self, content, name="run"):
        (self.folder / "model.onnx").write_bytes(content)
        limit = lambda: resource.setrlimit(resource.RLIMIT_AS, (MOST_BYTES, MOST_BYTES))
        return subprocess.run([PROGRAM, "import", self.folder / "model.onnx", "--output", self.folder / name],
                              capture_output=True, text=True, check=False, preexec_fn=limit)

    def bias_of(self, nodes, tensors, opset=18):
        """The bias of a dense layer whose bias the nodes compute as "c"."""
        scores = node("Gemm", ["x", "fc.weight", "c"], "y", integer("transB", 1), name="fc")
        weights = floats("fc.weight", [0.1 * k for k in range(18)], [3, 6])
        done = self.run_import(linear(nodes=[*nodes, scores], tensors=[weights, *tensors], opset=opset),
                               f"run{len(list(self.folder.iterdir()))}")
        self.assertEqual(done.returncode, 0, done.stderr)
        runs = max(self.folder.glob("run*"), key=lambda path: path.stat().st_mtime_ns)
        content = (runs / "model.safetensors").read_bytes()
        values = array.array("f")
        values.frombytes(content[-12:])  # the bias follows the weights
        return list(values)

    def check(self, expected, nodes, *tensors, opset=18):
        for got, wanted in zip(self.bias_of(nodes, tensors, opset), expected, strict=True):
            self.assertAlmostEqual(got, wanted, delta=5e-7 * max(1, abs(wanted)))

    def refuse(self, nodes, tensors, *texts, opset=18):
        scores = node("Gemm", ["x", "fc.weight", "c"], "y", integer("transB", 1), name="fc")
        weights = floats("fc.weight", [0.1 * k for k in range(18)], [3, 6])
        done = self.run_import(linear(nodes=[*nodes, scores], tensors=[weights, *tensors], opset=opset))
        self.assertEqual(done.returncode, 3, done.stderr)
        for part in texts:
            self.assertIn(part, done.stderr)

    def test_factors_of_a_dense_layer(self):
        """Gemm computes alpha x W + beta c."""
        factors = [onnx.block(1, name) + varfloat(value) + number(20, 1) for name, value in (("alpha", 2), ("beta", -0.5))]
        scores = node("Gemm", ["x", "fc.weight", "fc.bias"], "y", *factors, name="fc")
        done = self.run_import(linear(nodes=[scores], tensors=[floats("fc.weight", range(18), [6, 3]),
                                                               floats("fc.bias", [1, 2, 3])]))
        self.assertEqual(done.returncode, 0, done.stderr)
        values = array.array("f")
        values.frombytes((self.folder / "run" / "model.safetensors").read_bytes()[-4 * 21:])
        self.assertEqual(list(values), [2 * (3 * f + u) for u in range(3) for f in range(6)] + [-0.5, -1, -1.5])

    def test_what_pytorch_writes_for_a_missing_bias(self):
        nodes = [node("Shape", ["fc.weight"], "s", integer("start", 0), integer("end", 1)),
                 node("Expand", ["s", "one"], "e"), node("CastLike", ["zero", "x"], "z"), node("Expand", ["z", "e"], "c")]
        self.check([0, 0, 0], nodes, ints("one", [1]), tensor("zero", [], [0]))

    def test_parts_of_shapes(self):
        image = floats("i", range(24), [2, 3, 4])
        for start, end, expected in ((1, 2, [3]), (-1, 9, [4]), (-9, -2, [2]), (0, None, [2, 3, 4])):
            attributes = [integer("start", start)] + ([] if end is None else [integer("end", end)])
            nodes = [node("Shape", ["i"], "s", *attributes), node("Cast", ["s"], "f", integer("to", FLOAT)),
                     node("Expand", ["f", "three"], "c")]
            self.check(expected if len(expected) == 3 else expected * 3, nodes, image, ints("three", [3]))

    def test_arithmetic_with_broadcast(self):
        column, row = floats("a", [6, 3, 12], [3, 1]), floats("b", [2, 4], [1, 2])
        for kind, expected in (("Add", [8, 5, 14]), ("Sub", [4, 1, 10]), ("Mul", [12, 6, 24]), ("Div", [3, 1.5, 6]),
                               ("Pow", [36, 9, 144]), ("Max", [6, 3, 12]), ("Min", [2, 2, 2])):
            nodes = [node(kind, ["a", "b"], "m"), node("Slice", ["m", "zero", "one", "one"], "s"),
                     node("Squeeze", ["s", "one"], "c")]
            self.check(expected, nodes, column, row, ints("zero", [0]), ints("one", [1]))

    def test_functions(self):
        for kind, expected in (("Neg", [-4, 0.25, -1]), ("Abs", [4, 0.25, 1]), ("Floor", [4, -1, 1]), ("Ceil", [4, 0, 1]),
                               ("Sign", [1, -1, 1]), ("Reciprocal", [0.25, -4, 1]),
                               ("Exp", [54.59815, 0.7788008, 2.7182817])):
            self.check(expected, [node(kind, ["a"], "c")], floats("a", [4, -0.25, 1]))
        self.check([2, 0.5, 1], [node("Sqrt", ["a"], "c")], floats("a", [4, 0.25, 1]))

    def test_integers_are_divided_towards_zero(self):
        nodes = [node("Div", ["a", "b"], "d"), node("Cast", ["d"], "c", integer("to", FLOAT))]
        self.check([-3, 3, 0], nodes, ints("a", [-7, 7, 1]), ints("b", [2]))
        self.refuse(nodes, [ints("a", [1, 2, 3]), ints("b", [0])], "it divides by 0")

    def test_conversions_cut(self):
        nodes = [node("Cast", ["a"], "i", integer("to", INT64)), node("Cast", ["i"], "c", integer("to", FLOAT))]
        self.check([1, -1, 0], nodes, floats("a", [1.9, -1.9, 0.2]))
        nodes = [node("Cast", ["a"], "i", integer("to", BOOL)), node("Cast", ["i"], "c", integer("to", FLOAT))]
        self.check([1, 1, 0], nodes, floats("a", [1.9, -1.9, 0]))
        self.refuse([node("Cast", ["a"], "i", integer("to", INT64)), node("Cast", ["i"], "c", integer("to", 1))],
                    [floats("a", [1, float("inf"), 2])], "to an integer")

    def test_ranges(self):
        nodes = [node("Range", ["a", "b", "d"], "r"), node("Cast", ["r"], "c", integer("to", FLOAT))]
        for start, limit, delta, expected in ((1, 4, 1, [1, 2, 3]), (9, 2, -3, [9, 6, 3]), (0, 5, 2, [0, 2, 4])):
            self.check(expected, nodes, ints("a", [start], []), ints("b", [limit], []), ints("d", [delta], []))
        self.check([0, 0.5, 1], [node("Range", ["a", "b", "d"], "c")], floats("a", [0], []), floats("b", [1.25], []),
                   floats("d", [0.5], []))
        self.refuse(nodes, [ints("a", [0], []), ints("b", [2**31], []), ints("d", [1], [])], "Range")
        self.refuse(nodes, [ints("a", [0], []), ints("b", [9], []), ints("d", [0], [])], "its step is 0")
        self.refuse(nodes, [ints("a", [-2**63], []), ints("b", [2**63 - 1], []), ints("d", [1], [])], "Range")

    def test_where_and_comparisons(self):
        for kind, expected in (("Equal", [-1, 2, -3]), ("Greater", [-1, -2, 3]), ("Less", [1, -2, -3]),
                               ("GreaterOrEqual", [-1, 2, 3]), ("LessOrEqual", [1, 2, -3])):
            nodes = [node(kind, ["a", "two"], "t"), node("Neg", ["a"], "n"), node("Where", ["t", "a", "n"], "c")]
            self.check(expected, nodes, floats("a", [1, 2, 3]), floats("two", [2]))
        nodes = [node("Equal", ["a", "two"], "t"), node("Not", ["t"], "u"), node("Where", ["u", "a", "zero"], "c")]
        self.check([1, 0, 3], nodes, floats("a", [1, 2, 3]), floats("two", [2]), floats("zero", [0]))

    def test_parts(self):
        matrix = floats("a", range(12), [3, 4])
        nodes = [node("Slice", ["a", "starts", "ends", "axes", "steps"], "s"), node("Squeeze", ["s", "one"], "c")]
        self.check([9, 5, 1], nodes, matrix, ints("starts", [2, 1]), ints("ends", [-9, 2]), ints("axes", [0, 1]),
                   ints("steps", [-1, 1]), ints("one", [1]))
        self.check([5, 6, 7], [node("Slice", ["a", "starts", "ends", "axes", "steps"], "s"), node("Squeeze", ["s", "zero"], "t"),
                               node("Slice", ["t", "one", "four"], "c")], matrix, ints("starts", [1]), ints("ends", [-2**63]),
                   ints("axes", [0]), ints("steps", [-2**63]), ints("zero", [0]), ints("one", [1]), ints("four", [4]))
        nodes = [node("Gather", ["a", "places"], "s", integer("axis", 1)), node("Gather", ["s", "row"], "c")]
        self.check([7, 5, 4], nodes, matrix, ints("places", [3, 1, -4]), tensor("row", [], [1], INT64))
        nodes = [node("Concat", ["a", "b"], "s", integer("axis", 1)), node("Reshape", ["s", "flat"], "c")]
        self.check([1, 2, 3], nodes, floats("a", [1, 2], [1, 2]), floats("b", [3], [1, 1]), ints("flat", [-1]))

    def test_the_number_of_examples_stays_free(self):
        """The shape with -1 replaced by 1, as the older exporter of PyTorch writes `expand`, and a flatten by it."""
        nodes = [node("Shape", ["x"], "s"), node("Equal", ["s", "minus"], "t"), node("Where", ["t", "ones", "s"], "w"),
                 node("Slice", ["w", "zero", "one"], "n"), node("Concat", ["n", "left"], "r", integer("axis", 0)),
                 node("Reshape", ["x", "r"], "f"), node("Gemm", ["f", "fc.weight"], "y", integer("transB", 1), name="fc")]
        done = self.run_import(linear(nodes=nodes, tensors=[
            floats("fc.weight", [1] * 18, [3, 6]), ints("minus", [-1]), ints("ones", [1, 1]), ints("zero", [0]),
            ints("one", [1]), ints("left", [-1])]))
        self.assertEqual(done.returncode, 0, done.stderr)
        self.refuse([node("Shape", ["x"], "s"), node("Mul", ["s", "s"], "m"), node("ConstantOfShape", ["m"], "c")], [],
                    "the number of examples")
        self.refuse([node("Shape", ["x"], "s"), node("ConstantOfShape", ["s"], "c")], [], "the number of examples")

    def test_what_would_need_much_memory_is_refused(self):
        huge = ints("huge", [2**15, 2**15])
        self.refuse([node("Expand", ["a", "huge"], "c")], [floats("a", [1]), huge], "Expand", "more than 536870912 elements")
        column, row = floats("a", [1] * 70000, [70000, 1]), floats("b", [1] * 70000, [1, 70000])
        for kind in ("Add", "Less", "Where"):
            inputs = ["t", "a", "b"] if kind == "Where" else ["a", "b"]
            self.refuse([node(kind, inputs, "c")], [column, row, ints("t", [1])], kind, "elements")
        self.refuse([node("Expand", ["a", "wide"], "c")], [ints("a", [1]), ints("wide", [2**17])], "more than 65536 integers")
        ranks = ints("ranks", [1] * 20)
        self.refuse([node("Expand", ["a", "ranks"], "c")], [floats("a", [1]), ranks], "more than 16 dimensions")
        self.refuse([node("ConstantOfShape", ["ranks"], "c")], [ranks], "more than 16 dimensions")

    def test_extents_that_do_not_fit(self):
        self.refuse([node("Add", ["a", "b"], "c")], [floats("a", [1, 2]), floats("b", [1, 2, 3])], "the extents 2 and 3")
        self.refuse([node("Add", ["a", "b"], "c")], [floats("a", [1]), ints("b", [1])], "it mixes floating-point numbers and integers")
        self.refuse([node("Concat", ["a", "b"], "c", integer("axis", 0))],
                    [floats("a", [1, 2], [1, 2]), floats("b", [1, 2, 3], [1, 3])], "different extents")
        self.refuse([node("Slice", ["a", "two", "two"], "c")], [floats("a", [1, 2]), ints("two", [0, 0])], "differ in number")
        self.refuse([node("Transpose", ["a"], "c", integers("perm", [1, 1]))], [floats("a", [1, 2], [1, 2])], "'perm'")

    def test_dropout(self):
        def job_of(*nodes, tensors=(), opset=13):
            scores = node("Gemm", ["d", "fc.weight"], "y", integer("transB", 1), name="fc")
            done = self.run_import(linear(nodes=[*nodes, scores], opset=opset,
                                          tensors=[floats("fc.weight", [1] * 18, [3, 6]), *tensors]),
                                   f"run{len(list(self.folder.iterdir()))}")
            self.assertEqual(done.returncode, 0, done.stderr)
            return max(self.folder.glob("run*/job.txtpb"), key=lambda path: path.stat().st_mtime_ns).read_text()

        ratio = floats("r", [0.25], [])
        truth = tensor("t", [], kind=BOOL, raw=b"\1")
        self.assertIn("dropout { ratio: 0.25 }", job_of(node("Dropout", ["x", "r", "t"], "d"), tensors=[ratio, truth]))
        self.assertIn("dropout { ratio: 0.25 }", job_of(node("Dropout", ["x", "r"], "d"), tensors=[ratio]))
        self.assertIn("dropout { }", job_of(node("Dropout", ["x"], "d")))
        attribute = onnx.block(1, "ratio") + varfloat(0.75) + number(20, 1)
        self.assertIn("dropout { ratio: 0.75 }", job_of(node("Dropout", ["x"], "d", attribute), opset=10))
        self.assertNotIn("dropout", job_of(node("Dropout", ["x", "r"], "d"), tensors=[floats("r", [0], [])]))
        scores = node("Gemm", ["d", "fc.weight"], "y", integer("transB", 1), name="fc")
        for wrong in (1, -0.5, float("nan")):
            done = self.run_import(linear(nodes=[node("Dropout", ["x", "r"], "d", name="drop"), scores], tensors=[
                floats("fc.weight", [1] * 18, [3, 6]), floats("r", [wrong], [])]), "wrong")
            self.assertEqual(done.returncode, 3, done.stderr)
            self.assertIn("ratio must be in [0, 1)", done.stderr)


if __name__ == "__main__":
    unittest.main()
