"""The well-known networks that come with the Python package onnx, with random weights, compute here what they compute in
onnxruntime. Their own weights are all equal, so they would test little."""

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

FOLDER = pathlib.Path(onnx.__file__).parent / "backend/test/data/light"
LIMIT = 1e-4  # relative norm
# Not among them: VGG-19 and ZFNet-512, whose files would have 575 and 350 MB. ShuffleNet has a layer that is none of ours.
NAMES = ["bvlc_alexnet", "densenet121", "inception_v1", "inception_v2", "resnet50", "squeezenet"]


def constant_shapes(graph):
    """The shapes that the graph's ConstantOfShape nodes read, by name."""
    shapes = {tensor.name: numpy_helper.to_array(tensor) for tensor in graph.initializer}
    for node in graph.node:
        if node.op_type == "Constant":
            shapes[node.output[0]] = numpy_helper.to_array(node.attribute[0].t)
    return shapes


def with_random_weights(model):
    """Replaces constants by random weights, and the probabilities by the logits."""
    graph, random = model.graph, np.random.default_rng(11)
    shapes = constant_shapes(graph)
    nodes = []
    for node in graph.node:
        if node.op_type != "ConstantOfShape":
            nodes.append(node)
            continue
        shape = [int(extent) for extent in shapes[node.input[0]]]
        if len(shape) > 1:
            fan = int(np.prod(shape[1:]))
            values = random.standard_normal(shape, np.float32) * np.float32(np.sqrt(2 / fan))
        else:  # statistics, scales and biases
            values = random.uniform(0.5, 1.5, shape).astype(np.float32)
        graph.initializer.append(numpy_helper.from_array(values, node.output[0]))
    if nodes[-1].op_type == "Softmax":
        output = nodes.pop().input[0]
        del graph.output[:]
        graph.output.append(helper.make_tensor_value_info(output, onnx.TensorProto.FLOAT, None))
    del graph.node[:]
    graph.node.extend(nodes)
    read = {value for node in nodes for value in node.input}
    unread = [tensor for tensor in graph.initializer if tensor.name not in read]
    for tensor in unread:
        graph.initializer.remove(tensor)
    for value in [value for value in graph.input if value.name not in read]:
        graph.input.remove(value)
    return model


class LightImport(unittest.TestCase):
    def test_networks(self):
        for name in NAMES:
            with self.subTest(name), tempfile.TemporaryDirectory() as directory:
                file = pathlib.Path(directory) / "network.onnx"
                onnx.save(with_random_weights(onnx.load(FOLDER / f"light_{name}.onnx")), file)
                session = onnxruntime.InferenceSession(str(file), providers=["CPUExecutionProvider"])
                (value,) = session.get_inputs()
                image = np.random.default_rng(2).standard_normal(value.shape, np.float32)
                (expected,) = session.run(None, {value.name: image})
                self.assertGreater(np.std(expected), 0)
                probe.call(probe.PROGRAM, "import", file, "--output", f"{directory}/run")
                error = probe.relative_norm(probe.output_of(f"{directory}/run", image), expected)
                print(f"{name}: relative norm {error:.1e}")
                self.assertLess(error, LIMIT)


if __name__ == "__main__":
    if not FOLDER.is_dir():
        print(f"skipped: {FOLDER} is missing")
        sys.exit(4)
    unittest.main()
