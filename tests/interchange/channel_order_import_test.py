"""Files with channels last, as TensorFlow's models become them, and lines that get a height of 1 for a while, compute
here what they compute in onnxruntime."""

import pathlib
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
BATCH, HEIGHT, WIDTH, FILTERS, CLASSES = 4, 6, 5, 4, 3


class Network:
    """Nodes in a row, each reading the one before."""

    def __init__(self, shape):
        self.shape = shape
        self.random = np.random.default_rng(7)
        self.nodes, self.constants, self.last = [], [], "x"

    def constant(self, values):
        values = np.asarray(values)
        kind = np.int64 if values.dtype.kind == "i" else np.float32
        self.constants.append(numpy_helper.from_array(values.astype(kind), f"c{len(self.constants)}"))
        return self.constants[-1].name

    def numbers(self, *shape):
        return self.random.uniform(0.5, 1.5, shape)

    def add(self, kind, *constants, **attributes):
        output = f"v{len(self.nodes)}"
        inputs = [self.last, *map(self.constant, constants)]
        self.nodes.append(helper.make_node(kind, inputs, [output], name=f"node{len(self.nodes)}", **attributes))
        self.last = output
        return self

    def dense(self, inputs, outputs):
        return self.add("MatMul", self.random.standard_normal((inputs, outputs)) / inputs**0.5)

    def conv(self, channels):
        return self.add("Conv", self.random.standard_normal((FILTERS, channels, 3, 3)), pads=[1, 1, 1, 1])

    def model(self):
        self.nodes[-1].output[0] = "y"
        graph = helper.make_graph(self.nodes, "g", [helper.make_tensor_value_info("x", 1, ["n", *self.shape])],
                                  [helper.make_tensor_value_info("y", 1, ["n", CLASSES])], self.constants)
        model = helper.make_model(graph, opset_imports=[helper.make_opsetid("", 13)], ir_version=7)
        onnx.checker.check_model(model, full_check=True)
        return model


class ChannelOrderImport(unittest.TestCase):
    def check(self, network):
        """`network` reads images [n, h, w, c], lines [n, c, w] or vectors [n, f]; returns the job."""
        examples = network.random.standard_normal((BATCH, *network.shape)).astype(np.float32)
        model = network.model().SerializeToString()
        (expected,) = onnxruntime.InferenceSession(model, providers=["CPUExecutionProvider"]).run(["y"], {"x": examples})
        if examples.ndim == 4:
            ours = examples.transpose(0, 3, 1, 2)
        else:
            ours = examples.reshape(BATCH, examples.shape[1], 1, -1)
        with tempfile.TemporaryDirectory() as directory:
            file = pathlib.Path(directory) / "network.onnx"
            file.write_bytes(model)
            self.messages = probe.call(probe.PROGRAM, "import", file, "--output", file.with_suffix(".run"))
            got = probe.output_of(file.with_suffix(".run"), np.ascontiguousarray(ours))
            self.assertLess(probe.relative_norm(got, expected), LIMIT)
            again = probe.export(file.with_suffix(".run"), file.with_suffix(".again.onnx"))
            probe.check_round_trip(again, file.with_suffix(".copy"))
            return (file.with_suffix(".run") / "job.txtpb").read_text(encoding="utf-8")

    @staticmethod
    def images(channels):
        return Network((HEIGHT, WIDTH, channels))

    @staticmethod
    def finish(network, channels=3):
        """A convolution of channels that are first, and a dense layer that reads them last."""
        network.conv(channels).add("Transpose", perm=[0, 2, 3, 1])
        return network.add("Reshape", [-1, HEIGHT * WIDTH * FILTERS]).dense(HEIGHT * WIDTH * FILTERS, CLASSES)

    def test_a_reshape_of_one_channel_is_a_transpose(self):
        self.check(self.finish(self.images(1).add("Reshape", [-1, 1, HEIGHT, WIDTH]), 1))
        there_and_back = self.images(1).add("Reshape", [-1, 1, HEIGHT, WIDTH]).add("Relu")
        there_and_back.add("Reshape", [-1, HEIGHT, WIDTH, 1]).add("Transpose", perm=[0, 3, 1, 2])
        self.check(self.finish(there_and_back, 1))

    def test_channels_that_are_scaled_before_they_are_put_first(self):
        transpose = {"perm": [0, 3, 1, 2]}
        job = self.check(self.finish(self.images(3).add("Mul", 1 / 255).add("Add", 0.0).add("Transpose", **transpose)))
        self.assertIn("groups: 3", job)
        network = self.images(3)
        network.add("Mul", network.numbers(3)).add("Add", network.numbers(3)).add("Transpose", **transpose)
        self.check(self.finish(network))
        network = self.images(3)
        network.add("Sub", network.numbers(1, 1, 3)).add("Div", network.numbers(3)).add("Identity")
        self.check(self.finish(network.add("Transpose", **transpose)))
        network = self.images(1).add("Mul", 0.5).add("Sub", 1.0).add("Reshape", [-1, 1, HEIGHT, WIDTH])
        self.check(self.finish(network, 1))

    def test_features_that_are_scaled_behind_a_dense_layer_become_part_of_it(self):
        network = Network((6,)).dense(6, 8)
        network.add("Mul", network.numbers(8)).add("Add", network.numbers(8)).add("Relu").dense(8, CLASSES)
        self.assertNotIn("batch_norm", self.check(network))
        network = Network((6,)).dense(6, 8)  # with a bias of its own
        network.add("Add", network.numbers(8)).add("Div", network.numbers(1, 8)).add("Sub", network.numbers(8)).add("Tanh")
        self.assertNotIn("batch_norm", self.check(network.dense(8, CLASSES)))
        self.assertNotIn("batch_norm", self.check(Network((6,)).dense(6, 8).add("Mul", 0.5).add("Relu").dense(8, CLASSES)))

    def test_features_that_are_scaled_behind_an_activation_become_batch_norm(self):
        network = Network((6,)).dense(6, 8).add("Relu")
        network.add("Mul", network.numbers(8)).add("Add", network.numbers(8)).dense(8, CLASSES)
        self.assertEqual(self.check(network).count("batch_norm"), 1)
        self.assertIn("scaled by batch norm here", self.messages)
        self.assertIn("batch_norm", self.check(Network((6,)).dense(6, 8).add("Tanh").add("Mul", 0.5).dense(8, CLASSES)))

    def test_features_that_are_flattened_with_channels_last(self):
        features = HEIGHT * WIDTH * FILTERS
        for norm in (False, True):
            network = self.images(3).add("Transpose", perm=[0, 3, 1, 2]).conv(3).add("Transpose", perm=[0, 2, 3, 1])
            network.add("Reshape", [-1, features])
            if norm:
                network.add("BatchNormalization", *(network.numbers(features) for _ in range(4)))
            else:
                network.add("Mul", network.numbers(features)).add("Add", network.numbers(features))
            with self.subTest(norm=norm):
                self.assertEqual(self.check(network.dense(features, CLASSES)).count("batch_norm"), 1)

    def test_lines_that_are_images_of_one_row_for_a_while(self):
        lines = Network((3, 11)).add("Conv", Network(()).numbers(FILTERS, 3, 3), pads=[1, 1]).add("Relu")
        lines.add("Unsqueeze", [2]).add("MaxPool", kernel_shape=[1, 2], strides=[1, 2]).add("Squeeze", [-2]).add("Neg")
        lines.add("AveragePool", kernel_shape=[2], strides=[1]).add("Reshape", [-1, 4 * FILTERS])
        self.assertIn("kernel_width: 2", self.check(lines.dense(4 * FILTERS, CLASSES)))

    def test_other_dimensions_that_come_and_go_are_refused(self):
        for kind, axis, text in (("Unsqueeze", 1, "may add only the height"),
                                 ("Unsqueeze", 3, "may add only the height"),
                                 ("Squeeze", 1, "may remove only 1x1 spatial dimensions")):
            network = Network((1, 11)).add(kind, [axis]).add("Flatten").dense(11, CLASSES)
            with self.subTest(kind=kind, axis=axis), tempfile.TemporaryDirectory() as directory:
                file = pathlib.Path(directory) / "network.onnx"
                file.write_bytes(network.model().SerializeToString())
                message = probe.call(probe.PROGRAM, "import", file, "--output", file.with_suffix(".run"), code=3)
                self.assertIn(text, message)


if __name__ == "__main__":
    unittest.main()
