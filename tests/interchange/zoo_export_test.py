"""Every model of the zoo computes in onnxruntime what it computes here, and comes back by an import. Our output, in
float32, is also compared with the one that ONNX's operators compute in double precision.

With ARBALEST_ALL_MODELS=1 deep and wide variants are tested, too: minutes instead of one.

With a name of a file as argument, writes a line for each model, with the relative norms of the differences.
"""

import json
import os
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

import double_reference
import probe

LIMIT = 1e-4  # relative norm
DOUBLE_LIMIT = 1e-5  # relative norm, beside the output in double precision

# Text of the model, and channels, height, width and classes of its images. Models of the schema without an entry here
# are added below.
MODELS = {
    "logistic_regression": ("logistic_regression {}", (1, 28, 28, 10)),
    "mlp": ("mlp {}", (1, 28, 28, 10)),
    "lenet": ("lenet {}", (1, 28, 28, 10)),
    "lenet_bn": ("lenet { batch_norm: true }", (1, 28, 28, 10)),
    "cifar_quick": ("cifar_quick {}", (3, 32, 32, 10)),
    "alexnet": ("alexnet {}", (3, 224, 224, 20)),
    "alexnet_grouped": ("alexnet { variant: GROUPED }", (3, 227, 227, 20)),
    "vgg11": ("vgg { depth: 11 head: CIFAR }", (3, 32, 32, 10)),
    "vgg16_bn": ("vgg { depth: 16 head: CIFAR batch_norm: true }", (3, 32, 32, 100)),
    "vgg19": ("vgg { depth: 19 }", (3, 32, 32, 10)),
    "resnet_cifar20": ("resnet_cifar {}", (3, 32, 32, 10)),
    "resnet_cifar110": ("resnet_cifar { depth: 110 }", (3, 32, 32, 10)),
    "resnet18": ("resnet { depth: 18 }", (3, 64, 96, 30)),
    "resnet34": ("resnet { depth: 34 version: V2 }", (3, 64, 64, 30)),
    "resnet50": ("resnet {}", (3, 96, 64, 30)),
    "resnet50_v1": ("resnet { version: V1 }", (3, 64, 64, 30)),
    "resnet101": ("resnet { depth: 101 }", (3, 64, 64, 30)),
    "resnet152_v2": ("resnet { depth: 152 version: V2 }", (3, 64, 64, 30)),
    "inception_v3": ("inception_v3 {}", (3, 299, 299, 12)),
    "inception_v3_plain": ("inception_v3 { auxiliary_head: false }", (3, 139, 107, 12)),
    "mobilenet_v2": ("mobilenet_v2 {}", (3, 96, 64, 30)),
    "mobilenet_v2_narrow": ("mobilenet_v2 { width: 0.35 }", (3, 64, 64, 30)),
}
MODEL_OF_RATINGS = "matrix_factorization"
SCHEMA = (pathlib.Path(__file__).parents[2] / "proto/arbalest/v1/zoo.proto").read_text(encoding="utf-8")
for line in SCHEMA.split("oneof model {")[1].split("}")[0].splitlines():
    if "=" in line and line.split()[1] != MODEL_OF_RATINGS:
        MODELS.setdefault(line.split()[1], (line.split()[1] + " {}", (3, 96, 96, 30)))
# Variants whose parts other models have, too.
LARGE = {"alexnet_grouped", "vgg16_bn", "vgg19", "resnet_cifar110", "resnet50_v1", "resnet101", "resnet152_v2",
         "inception_v3"}
if os.environ.get("ARBALEST_ALL_MODELS") != "1" and len(sys.argv) == 1:
    MODELS = {name: model for name, model in MODELS.items() if name not in LARGE}
RATINGS = 'ratings { directory: "." sizes: [50, 70] }'
IDS = (50, 70)
BATCH = 3


def image_model(name, directory):
    """A run of this model with random weights, and examples for it."""
    text, size = MODELS[name]
    run = probe.make_run(pathlib.Path(directory) / "run", f"zoo {{ {text} }}", probe.images(*size))
    return run, np.random.default_rng(7).standard_normal((BATCH, *size[:3]), np.float32)


def ratings_model(directory):
    run = probe.make_run(pathlib.Path(directory) / "run", f"zoo {{ {MODEL_OF_RATINGS} {{}} }}", RATINGS)
    return run, np.random.default_rng(7).integers(0, IDS, (BATCH, 2), np.int64)


class ZooExport(unittest.TestCase):
    def check(self, run, examples, output):
        file = probe.export(run, run.with_suffix(".onnx"))
        model = onnx.load(file)
        onnx.checker.check_model(model, full_check=True)
        self.assertEqual((model.ir_version, model.opset_import[0].version), (7, 13))
        self.assertEqual(model.graph.input[0].type.tensor_type.shape.dim[0].dim_param, "batch")
        session = onnxruntime.InferenceSession(str(file), providers=["CPUExecutionProvider"])
        (got,) = session.run([output], {session.get_inputs()[0].name: examples})
        expected = probe.output_of(run, examples)
        self.assertLess(probe.relative_norm(got, expected), LIMIT)
        exact = double_reference.output_in_double(model, examples, output)
        self.assertLess(probe.relative_norm(expected, exact), DOUBLE_LIMIT)
        # Another number of examples than the one that our output was computed for.
        (single,) = session.run([output], {session.get_inputs()[0].name: examples[1:2]})
        self.assertLess(probe.relative_norm(single, expected[1:2]), LIMIT)
        again = probe.export(run, run.with_suffix(".again.onnx"))
        self.assertEqual(file.read_bytes(), again.read_bytes())
        imported = probe.check_round_trip(file, run.with_suffix(".imported"))
        self.assertLess(probe.relative_norm(probe.output_of(imported, examples), expected), LIMIT)
        return model

    def test_models_of_images(self):
        for name in MODELS:
            with self.subTest(name), tempfile.TemporaryDirectory() as directory:
                self.check(*image_model(name, directory), "logits")

    def test_matrix_factorization(self):
        with tempfile.TemporaryDirectory() as directory:
            self.check(*ratings_model(directory), "prediction")


def differences(run, examples, output):
    """Relative norms of the differences between our output, onnxruntime's and that in double precision."""
    file = probe.export(run, run.with_suffix(".onnx"))
    session = onnxruntime.InferenceSession(str(file), providers=["CPUExecutionProvider"])
    (theirs,) = session.run([output], {session.get_inputs()[0].name: examples})
    ours = probe.output_of(run, examples)
    exact = double_reference.output_in_double(onnx.load(file), examples, output)
    return {"ours and onnxruntime": float(probe.relative_norm(theirs, ours)),
            "ours and double": float(probe.relative_norm(ours, exact)),
            "onnxruntime and double": float(probe.relative_norm(theirs, exact))}


def measure(file):
    with open(file, "w", encoding="utf-8", buffering=1) as results:
        for name in (*MODELS, "matrix_factorization"):
            with tempfile.TemporaryDirectory() as directory:
                if name in MODELS:
                    row = {"model": MODELS[name][0], "input": MODELS[name][1][:3]}
                    row |= differences(*image_model(name, directory), "logits")
                else:
                    row = {"model": "matrix_factorization {}", "input": [2]}
                    row |= differences(*ratings_model(directory), "prediction")
            results.write(json.dumps({**row, "onnxruntime": onnxruntime.__version__}) + "\n")


if __name__ == "__main__":
    if len(sys.argv) > 1:
        measure(sys.argv[1])
    else:
        unittest.main()
