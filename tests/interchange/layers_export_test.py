"""Every kind of layer, with unusual options and names, computes in onnxruntime what it computes here. It comes back by
an import."""

import pathlib
import sys
import tempfile
import unittest

try:
    import numpy as np
    import onnx
    import onnxruntime
except ImportError as missing:
    print(f"skipped: {missing}")
    sys.exit(4)

import probe

LIMIT = 1e-5  # relative norm
BATCH = 4
HEAD = 'layers { name: "fc" input: "%s" dense { units: 5 } } layers { name: "loss" input: ["fc", "label"] softmax_cross_entropy {} }'

# Layers between the image, 4 x 13 x 10, and the last dense layer, which reads the last of them.
CASES = {
    "rectangles": """
      layers { name: "a" input: "image" conv { filters: 6 kernel_height: 3 kernel_width: 5 stride_height: 2 stride_width: 1
               padding_height: 1 padding_width: 3 dilation_height: 2 dilation_width: 1 } }""",
    "groups": """
      layers { name: "a" input: "image" conv { filters: 8 kernel: 3 groups: 4 use_bias: false } }
      layers { name: "b" input: "a" conv { filters: 8 kernel: 3 groups: 8 padding: 1 } }""",
    "same_padding": """
      layers { name: "a" input: "image" conv { filters: 6 kernel: 4 stride: 2 padding_mode: SAME } }
      layers { name: "b" input: "a" max_pool { kernel: 2 stride: 1 padding_mode: SAME } }
      layers { name: "c" input: "b" average_pool { kernel: 2 stride: 2 padding_mode: SAME } }
      layers { name: "d" input: "b" average_pool { kernel: 2 stride: 2 padding_mode: SAME count_padding: true } }
      layers { name: "e" input: ["c", "d"] concat {} }""",
    "ceil_mode": """
      layers { name: "a" input: "image" max_pool { kernel: 3 stride: 2 padding: 1 ceil_mode: true } }
      layers { name: "b" input: "image" average_pool { kernel: 3 stride: 2 padding: 1 ceil_mode: true } }
      layers { name: "c" input: ["a", "b"] add {} }
      layers { name: "d" input: "c" average_pool { kernel: 4 stride: 3 ceil_mode: true count_padding: true } }""",
    "extra_padding": """
      layers { name: "a" input: "image" conv { filters: 6 kernel: 3 stride: 2 extra_padding: 1 } }
      layers { name: "b" input: "image" conv { filters: 6 kernel: 3 stride: 2 extra_padding_height: 1 extra_padding_width: 1 } }
      layers { name: "c" input: ["a", "b"] concat {} }
      layers { name: "d" input: "c" max_pool { kernel: 3 padding: 1 extra_padding: 1 stride: 1 } }
      layers { name: "e" input: "d" average_pool { kernel: 3 extra_padding: 2 stride: 2 } }
      layers { name: "f" input: "d" average_pool { kernel: 3 extra_padding: 2 stride: 2 count_padding: true } }
      layers { name: "g" input: ["e", "f"] add {} }""",
    "padding_before": """
      layers { name: "a" input: "image" conv { filters: 6 kernel: 3 stride: 2 padding: 1 extra_padding: -1 } }
      layers { name: "b" input: "a" max_pool { kernel: 3 stride: 1 padding: 2 extra_padding_height: -2 extra_padding_width: -1 } }
      layers { name: "c" input: "b" average_pool { kernel: 3 stride: 2 padding: 1 extra_padding: -1 } }
      layers { name: "d" input: "b" average_pool { kernel: 3 stride: 2 padding: 1 extra_padding: -1 count_padding: true } }
      layers { name: "e" input: ["c", "d"] add {} }""",
    "count_padding": """
      layers { name: "a" input: "image" average_pool { kernel: 3 stride: 2 padding: 1 count_padding: true } }""",
    "activations": """
      layers { name: "a" input: "image" relu {} }
      layers { name: "b" input: "image" tanh {} }
      layers { name: "c" input: "image" sigmoid {} }
      layers { name: "d" input: "image" leaky_relu { slope: 0.2 } }
      layers { name: "e" input: "image" gelu {} }
      layers { name: "f" input: "image" silu {} }
      layers { name: "wide" input: "image" batch_norm { epsilon: 1e-3 momentum: 0.3 } }
      layers { name: "g" input: "wide" relu6 {} }
      layers { name: "far" input: "image" batch_norm { epsilon: 2e-3 } }
      layers { name: "i" input: "far" hard_swish {} }
      layers { name: "h" input: ["a", "b", "c", "d", "e", "f", "g", "i"] concat {} }""",
    "normalization": """
      layers { name: "a" input: "image" local_response_norm { size: 3 alpha: 0.5 beta: 0.6 k: 1.5 } }
      layers { name: "b" input: "a" conv { filters: 7 kernel: 3 } }
      layers { name: "c" input: "b" batch_norm { epsilon: 0.01 } }
      layers { name: "d" input: "c" dense { units: 9 } }
      layers { name: "e" input: "d" batch_norm {} }""",
    "layer_norm": """
      layers { name: "a" input: "image" layer_norm { epsilon: 0.01 } }
      layers { name: "b" input: "a" conv { filters: 7 kernel: 3 } }
      layers { name: "c" input: "b" layer_norm { affine: false } }
      layers { name: "d" input: "c" dense { units: 9 } }
      layers { name: "e" input: "d" layer_norm {} }""",
    "prelu": """
      layers { name: "a" input: "image" prelu {} }
      layers { name: "b" input: "a" conv { filters: 7 kernel: 3 } }
      layers { name: "c" input: "b" prelu {} }
      layers { name: "d" input: "c" dense { units: 9 } }
      layers { name: "e" input: "d" prelu { weight { learning_rate_multiplier: 2 } } }
      layers { name: "f" input: "e" dense { units: 1 } }
      layers { name: "g" input: "f" prelu {} }""",
    "shortcuts": """
      layers { name: "a" input: "image" padded_shortcut { channels: 9 stride: 2 } }
      layers { name: "b" input: "a" padded_shortcut { channels: 9 stride: 3 } }
      layers { name: "c" input: "b" padded_shortcut { channels: 10 } }
      layers { name: "d" input: "c" padded_shortcut { channels: 10 } }
      layers { name: "e" input: "d" global_average_pool {} }""",
    "dropout": """
      layers { name: "a" input: "image" dropout { ratio: 0.3 } }
      layers { name: "b" input: "a" flatten {} }
      layers { name: "c" input: "b" dropout {} }
      layers { name: "d" input: "c" softmax {} }""",
    # The file's own names, and names of weights, are taken.
    "names": """
      layers { name: "logits" input: "image" conv { filters: 4 kernel: 3 padding: 1 } }
      layers { name: "probabilities" input: "logits" relu {} }
      layers { name: "logits.weight" input: "probabilities" tanh {} }
      layers { name: "fc.bias" input: ["logits.weight", "image"] add {} }""",
}
# ONNX's momentum is the weight of the old statistics.
MOMENTA = {"activations": [0.7, 0.9], "normalization": [0.9, 0.9]}


def last_layer(layers):
    return layers.split('name: "')[-1].split('"')[0]


class LayersExport(unittest.TestCase):
    def outputs(self, directory, model, data, examples, names):
        """What onnxruntime computes from an exported run, and what we compute; the model."""
        run = probe.make_run(pathlib.Path(directory) / "run", model, data)
        file = probe.export(run, run.with_suffix(".onnx"), *(["--softmax"] if len(names) > 1 else []))
        model = onnx.load(file)
        onnx.checker.check_model(model, full_check=True)
        session = onnxruntime.InferenceSession(str(file), providers=["CPUExecutionProvider"])
        got = session.run(names, {session.get_inputs()[0].name: examples})
        expected = probe.output_of(run, examples)
        imported = probe.check_round_trip(file, run.with_suffix(".imported"), *(["--softmax"] if len(names) > 1 else []))
        self.assertLess(probe.relative_norm(probe.output_of(imported, examples), expected), LIMIT)
        return got, expected, model

    def test_every_kind_of_layer(self):
        examples = np.random.default_rng(3).standard_normal((BATCH, 4, 13, 10), np.float32) * 3
        for name, layers in CASES.items():
            with self.subTest(name), tempfile.TemporaryDirectory() as directory:
                model = layers + HEAD % last_layer(layers)
                names = ["logits", "probabilities"]
                (got, probabilities), expected, written = self.outputs(
                    directory, model, probe.images(4, 13, 10, 5), examples, names)
                self.assertLess(probe.relative_norm(got, expected), LIMIT)
                exponents = np.exp(expected.astype(np.float64) - expected.max(axis=1, keepdims=True))
                softmax = exponents / exponents.sum(axis=1, keepdims=True)
                self.assertLess(probe.relative_norm(probabilities, softmax), LIMIT)
                momenta = [attribute.f for node in written.graph.node for attribute in node.attribute
                           if attribute.name == "momentum"]
                for got, expected in zip(momenta, MOMENTA.get(name, [])):
                    self.assertAlmostEqual(got, expected, places=6)
                self.assertEqual(len(momenta), len(MOMENTA.get(name, [])))
                self.assertNotIn("Dropout", {node.op_type for node in written.graph.node})

    def test_the_output_may_be_that_of_a_dropout(self):
        layers = """
          layers { name: "a" input: "image" dense { units: 5 } }
          layers { name: "b" input: "a" dropout {} }
          layers { name: "loss" input: ["b", "label"] softmax_cross_entropy {} }"""
        examples = np.random.default_rng(3).standard_normal((BATCH, 1, 2, 3), np.float32)
        with tempfile.TemporaryDirectory() as directory:
            (got,), expected, _ = self.outputs(directory, layers, probe.images(1, 2, 3, 5), examples, ["logits"])
            self.assertLess(probe.relative_norm(got, expected), LIMIT)

    def test_layer_norms_of_other_axes_or_shapes_are_refused(self):
        layers = """
          layers { name: "a" input: "image" layer_norm {} }
          layers { name: "b" input: "a" dense { units: 5 } }
          layers { name: "c" input: "b" layer_norm {} }
          layers { name: "loss" input: ["c", "label"] softmax_cross_entropy {} }"""
        with tempfile.TemporaryDirectory() as directory:
            run = probe.make_run(pathlib.Path(directory) / "run", layers, probe.images(2, 3, 4, 5))
            file = probe.export(run, run.with_suffix(".onnx"))

            def imported(change, code):
                model = onnx.load(file)
                nodes = [node for node in model.graph.node if node.op_type == "LayerNormalization"]
                self.assertEqual(len(nodes), 2)
                change(model, nodes)
                changed = pathlib.Path(directory, "changed.onnx")
                onnx.save(model, changed)
                target = tempfile.mkdtemp(dir=directory)
                return probe.call(probe.PROGRAM, "import", changed, "--output", target, code=code)

            def set_axes(first, second):
                def change(_, nodes):
                    for node, axis in zip(nodes, (first, second)):
                        next(a for a in node.attribute if a.name == "axis").i = axis
                return change

            def set_scale(shape):
                def change(model, nodes):
                    scale = next(t for t in model.graph.initializer if t.name == nodes[0].input[1])
                    scale.CopyFrom(onnx.numpy_helper.from_array(np.ones(shape, np.float32), scale.name))
                return change

            imported(set_axes(-3, -1), 0)
            message = imported(set_axes(2, -1), 3)
            self.assertIn("LayerNormalization 'a': it normalizes the axes from 2 on", message)
            self.assertIn("give it the axis 1 (in PyTorch a normalized_shape of [2, 3, 4])", message)
            self.assertIn("LayerNormalization 'c': it normalizes the axes from 0 on", imported(set_axes(1, 0), 3))
            for shape in ([4], [2, 1, 1], [1], [1, 2, 3, 4]):
                self.assertIn(f"LayerNormalization 'a': its scale has the shape {shape}, and here it must have that of an "
                              "example, [2, 3, 4]", imported(set_scale(shape), 3))

            def leave_out_bias(_, nodes):
                del nodes[0].input[2]
            imported(leave_out_bias, 0)

    def test_prelus_of_one_slope_or_other_shapes(self):
        layers = """
          layers { name: "a" input: "image" prelu {} }
          layers { name: "b" input: "a" dense { units: 5 } }
          layers { name: "loss" input: ["b", "label"] softmax_cross_entropy {} }"""
        examples = np.random.default_rng(3).standard_normal((BATCH, 2, 3, 4), np.float32)
        with tempfile.TemporaryDirectory() as directory:
            run = probe.make_run(pathlib.Path(directory) / "run", layers, probe.images(2, 3, 4, 5))
            file = probe.export(run, run.with_suffix(".onnx"))

            def imported(slopes, code=0, operator_set=None):
                model = onnx.load(file)
                if operator_set is not None:
                    model.opset_import[0].version = operator_set
                node = next(node for node in model.graph.node if node.op_type == "PRelu")
                model.graph.initializer.append(onnx.numpy_helper.from_array(np.array(slopes, np.float32), "slopes"))
                node.input[1] = "slopes"
                changed = pathlib.Path(directory, "changed.onnx")
                onnx.save(model, changed)
                target = pathlib.Path(tempfile.mkdtemp(dir=directory))
                return target, probe.call(probe.PROGRAM, "import", changed, "--output", target, code=code)

            target, message = imported([[[0.3]], [[0.3]]])
            self.assertNotIn("one slope", message)
            expected = probe.output_of(target, examples)
            for slopes in (0.3, [0.3], [[[0.3]]]):
                target, message = imported(slopes)
                self.assertIn("layer 'a' has one slope for all channels; here each channel has its own", message)
                self.assertTrue(np.array_equal(probe.output_of(target, examples), expected))
            by_channel, _ = imported([[[0.1]], [[0.2]]])
            older, message = imported([0.1, 0.2], operator_set=6)  # slopes [c] were those of the channels
            self.assertNotIn("one slope", message)
            self.assertTrue(np.array_equal(probe.output_of(older, examples), probe.output_of(by_channel, examples)))
            for slopes in ([0.1, 0.2], [0.1, 0.2, 0.3, 0.4], [[0.1], [0.2], [0.3]], np.ones((2, 3, 4)), []):
                _, message = imported(slopes, 3)
                self.assertIn("PRelu 'a': it must have one slope, or one for each channel", message)

    def test_ids(self):
        layers = """
          layers { name: "users" input: "ids" embedding { rows: 9 width: 6 } }
          layers { name: "items" input: "ids" embedding { rows: 8 width: 6 column: 1 } }
          layers { name: "both" input: ["users", "items"] inner_product { use_bias: true } }
          layers { name: "bare" input: ["items", "users"] inner_product {} }
          layers { name: "a" input: ["both", "bare"] concat {} }
          layers { name: "b" input: "a" dense { units: 1 } }
          layers { name: "loss" input: ["b", "label"] squared_error {} }"""
        ids = np.array([[0, 0], [8, 7], [3, 1], [0, 6]])
        with tempfile.TemporaryDirectory() as directory:
            data = 'ratings { directory: "." sizes: [9, 8] }'
            (got,), expected, _ = self.outputs(directory, layers, data, ids, ["prediction"])
            self.assertLess(probe.relative_norm(got, expected), LIMIT)
            message = probe.call(probe.PROGRAM, "export", directory + "/run", "--output", directory + "/x.onnx",
                                 "--softmax", code=2)
            self.assertIn("predicts numbers", message)
            self.assertFalse(pathlib.Path(directory, "x.onnx").exists())

    def test_all_kinds_of_layers_are_tested(self):
        schema = pathlib.Path(__file__).parents[2] / "proto/arbalest/v1/model.proto"
        text = schema.read_text(encoding="utf-8").split("oneof kind {")[1].split("\n  }")[0]
        kinds = {line.split()[1] for line in text.splitlines() if "=" in line}
        source = pathlib.Path(__file__).read_text(encoding="utf-8")
        self.assertEqual({kind for kind in kinds if f" {kind} {{" not in source} - {"accuracy"}, set())


if __name__ == "__main__":
    unittest.main()
