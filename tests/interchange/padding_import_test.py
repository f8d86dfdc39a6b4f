"""Windows with another amount of padding on each side compute here what they compute in onnxruntime, and are exported
again as they were."""

import itertools
import pathlib
import subprocess
import sys
import tempfile
import unittest

try:
    import numpy as np
    import onnx
    import onnxruntime
    from onnx import helper, numpy_helper
except ImportError as missing:
    print(f"skipped: {missing}")
    sys.exit(4)

import probe

LIMIT = 1e-5  # relative norm
SHAPE = 4, 3, 10, 7
FILTERS, CLASSES = 6, 5
PADS = [{"pads": pads} for pads in ([0, 0, 1, 1], [1, 1, 0, 0], [2, 0, 1, 2], [0, 1, 2, 0])]
SAME = [{"auto_pad": mode} for mode in ("SAME_UPPER", "SAME_LOWER")]
POOLS = [("MaxPool", {}), ("AveragePool", {"count_include_pad": 0}), ("AveragePool", {"count_include_pad": 1})]


def network(kind, attributes):
    """One window, and a dense layer with random weights behind it."""
    random = np.random.default_rng(5)
    weights = {"conv.weight": (FILTERS, SHAPE[1], 3, 3)} if kind == "Conv" else {}
    inputs = ["image", *weights]
    window = helper.make_node(kind, inputs, ["features"], name="window", kernel_shape=[3, 3], **attributes)
    nodes = [window, helper.make_node("Flatten", ["features"], ["flat"], name="flat"),
             helper.make_node("MatMul", ["flat", "fc.weight"], ["y"], name="fc")]
    graph = helper.make_graph(nodes[:1], "g", [helper.make_tensor_value_info("image", 1, ["n", *SHAPE[1:]])],
                              [helper.make_tensor_value_info("features", 1, None)])
    model = helper.make_model(graph, opset_imports=[helper.make_opsetid("", 13)], ir_version=7)
    for name, shape in weights.items():
        graph.initializer.append(numpy_helper.from_array(random.standard_normal(shape).astype(np.float32), name))
    model = helper.make_model(graph, opset_imports=[helper.make_opsetid("", 13)], ir_version=7)
    features = onnx.shape_inference.infer_shapes(model).graph.output[0].type.tensor_type.shape
    count = int(np.prod([extent.dim_value for extent in features.dim[1:]]))
    graph.node.extend(nodes[1:])
    head = random.standard_normal((count, CLASSES)).astype(np.float32)
    graph.initializer.append(numpy_helper.from_array(head, "fc.weight"))
    del graph.output[:]
    graph.output.append(helper.make_tensor_value_info("y", 1, ["n", CLASSES]))
    model = helper.make_model(graph, opset_imports=[helper.make_opsetid("", 13)], ir_version=7)
    onnx.checker.check_model(model, full_check=True)
    return model


class PaddingImport(unittest.TestCase):
    examples = np.random.default_rng(9).standard_normal(SHAPE).astype(np.float32) - 1  # mostly below the padding's 0

    def check(self, kind, attributes):
        with tempfile.TemporaryDirectory() as directory:
            file = pathlib.Path(directory) / "model.onnx"
            file.write_bytes(network(kind, attributes).SerializeToString())
            probe.call(probe.PROGRAM, "import", file, "--output", file.with_suffix(".run"))
            session = onnxruntime.InferenceSession(str(file), providers=["CPUExecutionProvider"])
            (expected,) = session.run(["y"], {"image": self.examples})
            got = probe.output_of(file.with_suffix(".run"), self.examples)
            self.assertLess(probe.relative_norm(got, expected), LIMIT)
            # The export has the same numbers as pads.
            again = probe.export(file.with_suffix(".run"), file.with_suffix(".again.onnx"))
            written = {a.name: list(a.ints) for a in onnx.load(again).graph.node[0].attribute}
            if "pads" in attributes:
                self.assertEqual(written["pads"], attributes["pads"])
            session = onnxruntime.InferenceSession(str(again), providers=["CPUExecutionProvider"])
            (exported,) = session.run(["logits"], {session.get_inputs()[0].name: self.examples})
            self.assertLess(probe.relative_norm(exported, expected), LIMIT)
            probe.check_round_trip(again, file.with_suffix(".copy"))

    def test_windows(self):
        cases = [*itertools.product([("Conv", {}), *POOLS], PADS + SAME),
                 *itertools.product([("Conv", {"dilations": [2, 1]})], PADS)]
        for (kind, options), padding in cases:
            attributes = {"strides": [2, 3], **options, **padding}
            with self.subTest(kind=kind, **attributes):
                self.check(kind, attributes)

    def test_a_window_that_fits_itself_to_a_padded_image_is_refused(self):
        for (kind, options), padding in itertools.product([("Conv", {}), *POOLS[1:]], SAME):
            model = network(kind, {"strides": [2, 2], **options, **padding})
            window = model.graph.node[0]
            window.input[0] = "padded"
            pads = numpy_helper.from_array(np.array([0, 0, 1, 1, 0, 0, 1, 1]), "pads")
            model.graph.initializer.append(pads)
            model.graph.node.insert(0, helper.make_node("Pad", ["image", "pads"], ["padded"], name="pad"))
            with self.subTest(kind=kind, **padding), tempfile.TemporaryDirectory() as directory:
                file = pathlib.Path(directory) / "model.onnx"
                file.write_bytes(model.SerializeToString())
                done = subprocess.run([probe.PROGRAM, "import", file, "--output", file.with_suffix(".run")],
                                      capture_output=True, text=True, check=False)
                self.assertEqual(done.returncode, 3, done.stderr)
                self.assertIn("and a Pad has padded its image", done.stderr)


if __name__ == "__main__":
    unittest.main()
