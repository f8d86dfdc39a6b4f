"""Models that ONNX's authors have written with inputs and outputs (Debian's package libonnx-testdata): those that are
imported compute the outputs, and all others are refused with a reason.

A model of this suite is mostly one operator, with its weights among the inputs. A job's model has one input, weights of
its own, and one number for each class as output. So the inputs after the first become constants, and a dense layer with
random weights is put behind the output.

Without ARBALEST_ALL_MODELS=1 the test takes every fourth model.

With a name of a file as argument, writes a table of all models: result, suite, name, kinds of operators and reason. The
last line counts the results of the models that have no other kinds of operators than those that passed have.
"""

import collections
import os
import pathlib
import subprocess
import sys
import tempfile
import unittest

try:
    import numpy as np
    import onnx
    from onnx import helper, numpy_helper
except ImportError as missing:
    print(f"skipped: {missing}")
    sys.exit(4)

import probe

DATA = pathlib.Path(os.environ.get("ARBALEST_ONNX_TESTDATA", "/usr/share/libonnx-testdata/data"))
SUITES = {"node": 932, "pytorch-converted": 82, "pytorch-operator": 35}
STEP = 1 if os.environ.get("ARBALEST_ALL_MODELS") == "1" or len(sys.argv) > 1 else 4
PASSED_AT_LEAST = {1: {"node": 76, "pytorch-converted": 41, "pytorch-operator": 4},
                   4: {"node": 16, "pytorch-converted": 10, "pytorch-operator": 1}}[STEP]
LIMIT = 1e-4  # relative norm
CLASSES = 7


class Unfit(Exception):
    """The model has no input or output that a job's model could have."""


def tensor_of(path):
    tensor = onnx.TensorProto()
    tensor.ParseFromString(path.read_bytes())
    return tensor


def drops_at_random(graph, inputs, given):
    """Whether a Dropout is in training mode, which its third input says, and its ratio is not 0."""
    if all(node.op_type != "Dropout" for node in graph.node):
        return False
    numbers = {value.name: numpy_helper.to_array(tensor) for value, tensor in zip(inputs, given)}
    numbers |= {tensor.name: numpy_helper.to_array(tensor) for tensor in graph.initializer}
    for node in graph.node:
        if node.op_type == "Constant" and node.attribute[0].name == "value":
            numbers[node.output[0]] = numpy_helper.to_array(node.attribute[0].t)
    return any(node.op_type == "Dropout" and len(node.input) > 2 and numbers[node.input[2]]
               and numbers.get(node.input[1], 0.5) > 0 for node in graph.node)


def prepare(folder):
    """The model as a job's model could be, its input, and the output that it must have."""
    model = onnx.load(folder / "model.onnx")
    graph = model.graph
    constants = {tensor.name for tensor in graph.initializer}
    inputs = [value for value in graph.input if value.name not in constants]
    files = folder / "test_data_set_0"
    try:
        given = [tensor_of(files / f"input_{k}.pb") for k in range(len(inputs))]
        expected = numpy_helper.to_array(tensor_of(files / "output_0.pb"))
    except Exception as error:
        raise Unfit("its data is no tensor") from error
    trains = {attribute.i for node in graph.node for attribute in node.attribute if attribute.name == "training_mode"}
    if 1 in trains:
        raise Unfit("its batch norm takes the statistics of the mini-batch; imported ones do so in training only")
    if drops_at_random(graph, inputs, given):
        raise Unfit("its dropout drops at random; imported dropout is left out")
    if not inputs or expected.dtype != np.float32 or expected.ndim not in (2, 3, 4) or len(expected) == 0:
        raise Unfit("its output is no image, line or vector of float32")
    del graph.input[:]
    graph.input.append(inputs[0])
    for value, tensor in zip(inputs[1:], given[1:]):
        tensor.name = value.name
        graph.initializer.append(tensor)
    weights = np.random.default_rng(1).standard_normal((expected[0].size, CLASSES)).astype(np.float32)
    graph.initializer.append(numpy_helper.from_array(weights, "head.weight"))
    graph.node.append(helper.make_node("Flatten", [graph.output[0].name], ["head_features"], name="head_flatten"))
    graph.node.append(helper.make_node("MatMul", ["head_features", "head.weight"], ["head_output"], name="head"))
    del graph.output[:]
    graph.output.append(helper.make_tensor_value_info("head_output", onnx.TensorProto.FLOAT, [None, CLASSES]))
    return model, numpy_helper.to_array(given[0]), expected.reshape(len(expected), -1).astype(np.float64) @ weights


def result_of(folder, directory):
    """("passed", "refused" or "wrong", and why)."""
    try:
        model, image, expected = prepare(folder)
    except Unfit as unfit:
        return "unfit", str(unfit)
    file = directory / "model.onnx"
    file.write_bytes(model.SerializeToString())
    done = subprocess.run([probe.PROGRAM, "import", file, "--output", directory / "run"], capture_output=True,
                          text=True, check=False)
    if done.returncode in (3, 5):
        return "refused", done.stderr.replace(str(file), "model.onnx").strip().replace("\n", " ")
    if done.returncode != 0:
        return "wrong", f"exit code {done.returncode}: {done.stderr}"
    got = probe.output_of(directory / "run", image)
    error = probe.relative_norm(got, expected) if got.size == expected.size else np.inf
    return ("passed", "") if error < LIMIT else ("wrong", f"relative norm {error}")


def all_results():
    for suite in SUITES:
        for folder in sorted((DATA / suite).iterdir())[::STEP]:
            kinds = sorted({node.op_type for node in onnx.load(folder / "model.onnx").graph.node})
            with tempfile.TemporaryDirectory() as directory:
                yield suite, folder.name, kinds, *result_of(folder, pathlib.Path(directory))


def write_table(file):
    rows = list(all_results())
    known = {kind for _, _, kinds, result, _ in rows if result == "passed" for kind in kinds}
    counts = collections.Counter(result for _, _, kinds, result, _ in rows if kinds and set(kinds) <= known)
    with open(file, "w", encoding="utf-8") as table:
        table.write("result\tsuite\tmodel\toperators\treason\n")
        for suite, name, kinds, result, reason in rows:
            table.write("\t".join([result, suite, name, " ".join(kinds), reason]) + "\n")
        summary = ", ".join(f"{count} {result}" for result, count in sorted(counts.items()))
        table.write(f"known operators only\tall\t{sum(counts.values())} models\t{' '.join(sorted(known))}\t{summary}\n")


class Testdata(unittest.TestCase):
    def test_models(self):
        counts = collections.Counter()
        for suite, name, _, result, reason in all_results():
            counts[suite, result] += 1
            counts[suite, "all"] += 1
            with self.subTest(name):
                self.assertNotEqual(result, "wrong", reason)
        print(dict(counts))
        for suite, size in SUITES.items():
            self.assertEqual(counts[suite, "all"], -(-size // STEP))
            self.assertGreaterEqual(counts[suite, "passed"], PASSED_AT_LEAST[suite])


if __name__ == "__main__":
    if not DATA.is_dir():
        print(f"skipped: {DATA} is missing; the package is libonnx-testdata")
        sys.exit(4)
    if len(sys.argv) > 1:
        write_table(sys.argv[1])
    else:
        unittest.main()
