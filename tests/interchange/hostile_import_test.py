"""Damaged and hostile ONNX files are refused with a clear message and the right exit code, and nothing is left behind."""

import hashlib
import os
import pathlib
import resource
import shutil
import subprocess
import tempfile
import unittest

import onnx_bytes as onnx
from onnx_bytes import INT64, integer, integers, linear, model, node, tensor, value

PROGRAM = os.environ["ARBALEST_PROGRAM"]
MOST_BYTES = 8 << 30  # of address space: a file that asks for more must be refused before
WEIGHTS = b"".join(tensor("", [], [0.1 * k])[-4:] for k in range(18))  # of the sound model


def with_data(**entries):
    """The sound model with its weights in another file."""
    return linear(tensors=[onnx.external_tensor("fc.weight", [3, 6], **entries), tensor("fc.bias", [3], [1, 2, 3])])


class HostileImport(unittest.TestCase):
    def setUp(self):
        folder = tempfile.TemporaryDirectory()
        self.addCleanup(folder.cleanup)
        self.outside = pathlib.Path(folder.name)
        self.folder = self.outside / "models"
        self.folder.mkdir()
        self.file = self.folder / "model.onnx"

    def run_import(self, content=None):
        if content is not None:
            self.file.write_bytes(content)
        limit = lambda: resource.setrlimit(resource.RLIMIT_AS, (MOST_BYTES, MOST_BYTES))
        return subprocess.run([PROGRAM, "import", self.file, "--output", self.folder / "run"], capture_output=True,
                              text=True, check=False, preexec_fn=limit)

    def refuse(self, content, code, *texts):
        done = self.run_import(content)
        self.assertEqual(done.returncode, code, done.stderr)
        for text in texts:
            self.assertIn(text, done.stderr)
        self.assertFalse((self.folder / "run").exists())

    def test_the_sound_model_is_imported(self):
        done = self.run_import(linear())
        self.assertEqual(done.returncode, 0, done.stderr)
        self.assertEqual(sorted(os.listdir(self.folder / "run")), ["job.txtpb", "model.safetensors", "summary.json"])
        self.refuse_existing()

    def refuse_existing(self):
        done = self.run_import()
        self.assertEqual(done.returncode, 2)
        self.assertIn("not empty", done.stderr)

    def test_what_is_no_model(self):
        self.refuse(b"", 5, "not an ONNX model")
        self.refuse(b"no model", 5, "not an ONNX model")
        self.refuse(os.urandom(1000), 5)
        self.file.unlink()
        self.refuse(None, 4, "model.onnx': No such file")
        self.file.mkdir()
        self.refuse(None, 5, "not a regular file")

    def test_every_truncation(self):
        content = linear()
        for length in range(0, len(content), 7):
            with self.subTest(length):
                done = self.run_import(content[:length])
                self.assertIn(done.returncode, (3, 5), done.stderr)
                self.assertFalse((self.folder / "run").exists())

    def test_cycles_and_repeated_names(self):
        self.refuse(linear(nodes=[node("Relu", ["y"], "z", name="a"), node("Relu", ["z"], "y", name="b")]), 5, "cycle")
        self.refuse(linear(nodes=[node("Relu", ["y"], "y", name="a")]), 5, "cycle through 'a'")
        self.refuse(linear(nodes=[node("Relu", ["x"], "y"), node("Tanh", ["x"], "y")]), 5, "two nodes write the value 'y'")
        weights = tensor("fc.bias", [3], [1, 2, 3])
        self.refuse(linear(tensors=[weights, weights]), 5, "two initializers have the name 'fc.bias'")

    def test_a_long_chain_of_nodes_in_reverse_order(self):
        nodes = [node("Relu", [f"v{k}"], f"v{k + 1}") for k in reversed(range(100000))]
        nodes += [node("Identity", ["x"], "v0"), node("NoSuchThing", ["v100000"], "y", name="last")]
        self.refuse(linear(nodes=nodes, tensors=[]), 3, "NoSuchThing 'last'")

    def test_shapes(self):
        for extent in (2**63 - 1, -2**63, -1, 2**32, 2**62):
            with self.subTest(extent):
                self.refuse(linear(tensors=[tensor("fc.weight", [extent, extent], [1] * 18)]), 5, "fc.weight")
                self.refuse(linear(inputs=[value("x", ["n", extent])]), 3, "input 'x'")
        self.refuse(linear(tensors=[tensor("fc.weight", [3, 7], [1] * 18)]), 5, "72 bytes, but its shape needs 84")
        self.refuse(linear(inputs=[value("x", ["n", 7])]), 3, "its weights are for 6 features, but it reads 7")
        self.refuse(linear(inputs=[value("x", ["n", "features"])]), 3, "dimension 1 of the input 'x' is free")
        self.refuse(linear(inputs=[value("x", ["n", 6]), value("z", ["n", 6])]), 3, "2 inputs: 'x', 'z'")
        self.refuse(linear(outputs=[]), 3, "no output")
        self.refuse(linear(outputs=[value("nowhere", ["n", 3])]), 3, "'nowhere'")

    def test_huge_constants(self):
        shape = tensor("shape", [2], [2**31, 2**31], INT64)
        self.refuse(linear(nodes=[node("ConstantOfShape", ["shape"], "fc.weight", name="huge"),
                                  node("Gemm", ["x", "fc.weight"], "y")], tensors=[shape]), 3, "ConstantOfShape 'huge'")
        # Each is allowed by itself.
        shape = tensor("shape", [1], [2**27], INT64)
        nodes = [node("ConstantOfShape", ["shape"], f"c{k}") for k in range(100)]
        nodes.append(node("Concat", [f"c{k}" for k in range(100)], "y", integer("axis", 0)))
        self.refuse(linear(nodes=nodes, tensors=[shape]), 3, "more than 536870912 elements")
        # The result of one node is too large.
        row = tensor("row", [2], [1, 10**5], INT64)
        places = tensor("places", [1], [5 * 10**5], INT64)
        nodes = [node("ConstantOfShape", ["row"], "c"), node("ConstantOfShape", ["places"], "at"),
                 node("Gather", ["c", "at"], "y", integer("axis", 0))]
        self.refuse(linear(nodes=nodes, tensors=[row, places]), 3, "Gather")

    def test_long_lists_of_integers(self):
        length = tensor("length", [1], [2**16], INT64)
        one = onnx.block(1, "value") + onnx.block(5, tensor("", [1], [1], INT64)) + onnx.number(20, 4)
        ones = node("ConstantOfShape", ["length"], "ones", one, name="ones")
        twice = node("Concat", ["ones", "ones"], "y", integer("axis", 0), name="twice")
        self.refuse(linear(nodes=[ones, twice], tensors=[length]), 3, "Concat 'twice'", "more than 65536 integers")
        longer = tensor("length", [1], [2**16 + 1], INT64)
        self.refuse(linear(nodes=[ones, twice], tensors=[longer]), 3, "ConstantOfShape 'ones'", "more than 65536 integers")
        again = node("Gather", ["ones", "places"], "y", integer("axis", 0), name="again")
        places = tensor("places", [2**16 + 1], [0] * (2**16 + 1), INT64)
        self.refuse(linear(nodes=[ones, again], tensors=[length, places]), 3, "Gather 'again'", "more than 65536 integers")

    def test_a_constant_is_counted_once(self):
        shape = tensor("shape", [2], [3 * 2**20, 96], INT64)  # more than half of what may be computed
        nodes = [node("ConstantOfShape", ["shape"], "c"), node("MatMul", ["x", "c"], "y", name="product")]
        self.refuse(linear(nodes=nodes, tensors=[shape]), 3, "MatMul 'product'")

    def test_ranges_with_the_least_step(self):
        ends = [tensor(name, [1], [number], INT64) for name, number in (("from", 0), ("to", 1), ("axis", 0), ("step", -2**63))]
        nodes = [node("Slice", ["fc.bias", "from", "to", "axis", "step"], "y", name="range")]
        self.refuse(linear(nodes=nodes, tensors=[tensor("fc.bias", [3], [1, 2, 3]), *ends]), 3, "a constant")

    def test_images_that_grow_without_end(self):
        nodes = [node("Concat", ["x" if k == 0 else f"v{k}"] * 8, f"v{k + 1}", integer("axis", 1), name=f"join{k}")
                 for k in range(26)]
        nodes.append(node("Flatten", ["v26"], "y"))
        image = value("x", ["n", 4, 6, 6])
        self.refuse(model(nodes, inputs=[image]), 3, "Concat 'join7'", "more than 1073741824 elements")

    def test_axes_that_repeat_or_are_many(self):
        def unsqueezed(axes):
            nodes = [node("Unsqueeze", ["fc.bias", "axes"], "u", name="longer"), node("Add", ["x", "u"], "y")]
            tensors = [tensor("fc.bias", [3], [1, 2, 3]), tensor("axes", [len(axes)], axes, INT64)]
            return linear(nodes=nodes, tensors=tensors)

        self.refuse(unsqueezed([0, 0]), 3, "Unsqueeze 'longer': its axes repeat")
        self.refuse(unsqueezed([1, -2]), 3, "Unsqueeze 'longer': its axes repeat")
        self.refuse(unsqueezed([0] * 100000), 3, "Unsqueeze 'longer': it makes more than 16 dimensions")

    def test_many_nodes_of_one_name(self):
        nodes = [node("Relu", ["x" if k == 0 else f"v{k}"], f"v{k + 1}", name="a") for k in range(1000)]
        nodes.append(node("Relu", ["v1000"], "last", name="a_2"))
        nodes.append(node("Gemm", ["last", "fc.weight", "fc.bias"], "y", integer("transB", 1)))
        done = self.run_import(linear(nodes=nodes))
        self.assertEqual(done.returncode, 0, done.stderr)
        job = (self.folder / "run" / "job.txtpb").read_text()
        for name in ("a", "a_2", "a_1000", "a_2_2"):
            self.assertEqual(job.count(f'name: "{name}"'), 1, name)

    def test_types_that_are_no_numbers(self):
        words = tensor("words", [1], kind=8, raw=b"")
        one = onnx.block(1, "value") + onnx.block(5, tensor("", [1], kind=17, raw=b"1")) + onnx.number(20, 4)
        nodes = [node("Constant", [], "c", one, name="eight"), node("Add", ["x", "words"], "a", name="texts"),
                 node("Sin", ["x"], "s", name="sine"), node("Sum", ["a", "s", "c"], "y")]
        self.refuse(linear(nodes=nodes, tensors=[words]), 3, "3 of its 4 nodes cannot be imported", "Sin 'sine'",
                    "Constant 'eight': its constant '' has elements of type 17",
                    "Add 'texts': its constant 'words' has elements of type STRING")
        self.refuse(linear(nodes=[node("Relu", ["x"], "z")], tensors=[words], outputs=[value("words", [1])]), 3,
                    "its output 'words' cannot be imported")

    def test_control_characters_of_names_do_not_reach_the_job(self):
        done = self.run_import(linear(nodes=[node("Gemm", ["x", "fc.weight"], "y", integer("transB", 1), name="a\x1b[2J\nb")],
                                      tensors=[tensor("fc.weight", [3, 6], [1] * 18)]))
        self.assertEqual(done.returncode, 0, done.stderr)
        self.assertNotIn("\\033", (self.folder / "run" / "job.txtpb").read_text())

    def test_what_would_compute_something_else_is_refused(self):
        scores = node("Gemm", ["x", "fc.weight", "fc.bias"], "scores", integer("transB", 1), name="fc")
        for axis in (0, -2):
            self.refuse(linear(nodes=[scores, node("Softmax", ["scores"], "y", integer("axis", axis), name="over")]), 3,
                        "Softmax 'over'")
        float8 = node("Cast", ["fc.bias"], "small", integer("to", 17), name="float8")
        rounded = node("Gemm", ["x", "fc.weight", "small"], "y", integer("transB", 1), name="fc")
        self.refuse(linear(nodes=[float8, rounded]), 3, "Cast 'float8'")
        self.refuse(linear(nodes=[node("Cast", ["x"], "small", integer("to", 17), name="float8"),
                                  node("Relu", ["small"], "y")]), 3, "Cast 'float8'")
        # The sigmoid of the transposed image is no gate of the image.
        image = value("x", ["n", 3, 3, 3])
        nodes = [node("Relu", ["x"], "k"), node("Transpose", ["k"], "t", integers("perm", [0, 2, 3, 1])),
                 node("Sigmoid", ["t"], "s"), node("Mul", ["k", "s"], "z", name="gate"), node("Flatten", ["z"], "y")]
        self.refuse(model(nodes, inputs=[image]), 3, "Mul 'gate'")

    def test_files_that_a_killed_import_has_left(self):
        (self.folder / "run").mkdir()
        (self.folder / "run" / "model.safetensors.partial-1").write_bytes(b"begun")
        done = self.run_import(linear())
        self.assertEqual(done.returncode, 0, done.stderr)
        self.assertEqual(sorted(os.listdir(self.folder / "run")), ["job.txtpb", "model.safetensors", "summary.json"])

    def test_external_data_that_are_huge_together(self):
        with open(self.folder / "sparse", "wb") as sparse:
            sparse.truncate(2**32)
        tensors = [onnx.external_tensor(f"t{k}", [2**30], location="sparse") for k in range(40)]
        self.refuse(linear(tensors=tensors), 5, "more than 8589934592 bytes together")

    def test_control_characters_of_names_do_not_reach_the_terminal(self):
        done = self.run_import(linear(nodes=[node("Relu", ["x"], "r"), node("Det", ["r"], "y", name="a\x1b[2J\nb")]))
        self.assertEqual(done.returncode, 3, done.stderr)
        self.assertNotIn("\x1b", done.stderr)

    def test_weights_that_are_not_finite(self):
        for number in (float("nan"), float("inf")):
            self.refuse(linear(tensors=[tensor("fc.weight", [3, 6], [number] * 18), tensor("fc.bias", [3], [0] * 3)]), 5,
                        f"'{self.file}': the weights of 'fc.weight' are not all finite")

    def test_parts_of_formulas_without_inputs(self):
        """Formulas that are spelled out are looked for in nodes of any form."""
        axes = [tensor("both", [2], [0, 1], INT64), tensor("zero", [], [0.0])]
        kinds = ("Add", "Sub", "Mul", "Div", "Pow", "Neg", "Sqrt", "Reciprocal", "Unsqueeze", "Squeeze", "Reshape", "Conv",
                 "MaxPool", "ConstantOfShape", "Max", "Min", "ReduceMax", "Shape")
        for inner in kinds:
            for outer in kinds:
                nodes = [node(inner, [], "a"), node("Mul", ["x", "a"], "b"), node(outer, ["b", "a"], "c"),
                         node(outer, ["a", "both"], "d"), node("Div", ["c", "d"], "e"), node("Squeeze", ["a", "both"], "f"),
                         node("Add", ["e", "f"], "g"), node("Min", ["g", "zero"], "y", name="last")]
                self.file.write_bytes(linear(nodes=nodes, tensors=axes))
                done = self.run_import()
                self.assertIn(done.returncode, (3, 5), f"{inner}, {outer}: {done.stderr}")

    def test_names_that_formulas_might_use(self):
        nodes = [node("Relu", ["x"], "formula" + "_" * 10), node("Max", ["formula" + "_" * 10, "zero"], "formula"),
                 node("Gemm", ["formula", "fc.weight", "fc.bias"], "y", integer("transB", 1))]
        tensors = [tensor("fc.weight", [3, 6], [1] * 18), tensor("fc.bias", [3], [1, 2, 3]), tensor("zero", [], [0.0])]
        done = self.run_import(linear(nodes=nodes, tensors=tensors))
        self.assertEqual(done.returncode, 0, done.stderr)
        shutil.rmtree(self.folder / "run")
        nodes[0] = node("Relu", ["x"], "formula" + "_" * 100000)
        nodes[1] = node("Max", ["formula" + "_" * 100000, "zero"], "formula", name="bound")
        self.refuse(linear(nodes=nodes, tensors=tensors), 3, "Max 'bound'")

    def test_orders_that_are_none(self):
        for order in ([0, 0], [0, 1, 2]):
            nodes = [node("Transpose", ["x"], "t", integers("perm", order)), node("Relu", ["t"], "y")]
            self.refuse(linear(nodes=nodes), 3, "Transpose")

    def test_windows_of_any_length(self):
        image = value("x", ["n", 1, 8, 8])
        weights = tensor("w", [1, 1, 3, 3], [1] * 9)
        for name, values in (("strides", [2**62, 2**62]), ("strides", [0, 1]), ("pads", [-1, 0, 0, 0]),
                             ("pads", [2**62] * 4), ("dilations", [2**40, 1]), ("kernel_shape", [3, 2**63 - 1]),
                             ("strides", [1]), ("pads", [1, 1])):
            with self.subTest(name=name, values=values):
                nodes = [node("Conv", ["x", "w"], "z", integers(name, values), name="conv"), node("Flatten", ["z"], "y")]
                self.refuse(model(nodes, [weights], inputs=[image]), 3, "Conv 'conv'")
        nodes = [node("Conv", ["x", "w"], "z", integer("group", -3), name="conv"), node("Flatten", ["z"], "y")]
        self.refuse(model(nodes, [weights], inputs=[image]), 3, "Conv 'conv'")

    def test_all_nodes_that_cannot_be_imported_are_listed(self):
        nodes = [node("Sin", ["x"], "a", name="first"), node("Relu", ["a"], "b", name="between"),
                 node("LSTM", ["b"], "c", name="second"), node("Gemm", ["c", "fc.weight"], "y", name="fc"),
                 node("Cos", ["x"], "unused", name="not needed")]
        done = self.run_import(linear(nodes=nodes))
        self.assertEqual(done.returncode, 3)
        self.assertIn("2 of its 5 nodes cannot be imported", done.stderr)
        self.assertIn("Sin 'first'", done.stderr)
        self.assertIn("LSTM 'second'", done.stderr)
        self.assertNotIn("between", done.stderr)
        self.assertIn("Nodes that depend on these were not checked: 2", done.stderr)
        self.assertNotIn("not needed", done.stderr)
        self.refuse(linear(nodes=[node("Gemm", ["x", "fc.weight", "fc.bias"], "y", integer("transB", 1), integer("new", 1),
                                       name="fc")]), 3, "its attribute 'new' cannot be imported")
        self.refuse(linear(opset=99), 3, "operator set 99")

    def test_a_long_list_is_whole(self):
        nodes = [node("Sin", ["x"], f"v{k}", name=f"sin{k}.") for k in range(150)]
        done = self.run_import(linear(nodes=[*nodes, node("Sum", [f"v{k}" for k in range(150)], "y")]))
        self.assertEqual(done.returncode, 3)
        for k in range(150):
            self.assertIn(f"Sin 'sin{k}.'", done.stderr)

    def write_data(self, path):
        """Writes the weights behind four other bytes."""
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_bytes(b"1234" + WEIGHTS)

    def check_weights(self, path=None):
        done = self.run_import() if path is None else self.run_import_of(path)
        self.assertEqual(done.returncode, 0, done.stderr)
        self.assertIn(WEIGHTS, (self.folder / "run" / "model.safetensors").read_bytes())
        shutil.rmtree(self.folder / "run")

    def run_import_of(self, path):
        return subprocess.run([PROGRAM, "import", path, "--output", self.folder / "run"], capture_output=True, text=True,
                              check=False)

    def test_external_data(self):
        self.write_data(self.folder / "data" / "good")
        self.write_data(self.outside / "secret")
        (self.folder / "link").symlink_to(self.outside / "secret")
        (self.folder / "linked").symlink_to(self.outside)
        (self.folder / "loop").symlink_to("loop")
        (self.folder / "nowhere").symlink_to("neither")
        os.mkfifo(self.folder / "pipe")
        (self.folder / "pipeline").symlink_to("pipe")
        outside = ("lies neither below the model's folder nor beside", "copy that file into the model's folder")
        for location, *reasons in (("../secret", "outside the folder", "copy that file into the model's folder"),
                                   (str(self.outside / "secret"), "outside the folder"), ("link", *outside),
                                   ("linked/secret", *outside), ("linked/models/link", *outside),
                                   ("data/../link", "outside the folder"), ("loop", "Too many levels of symbolic links"),
                                   ("pipe", "not a regular file"), ("pipeline", "not a regular file"),
                                   ("data", "not a regular file"), ("nowhere", "No such file"), (".", "not a regular file"),
                                   ("", "names no file"), ("a\0b", "names no file")):
            with self.subTest(location):
                self.refuse(with_data(location=location), 5, "'fc.weight'", *reasons)
        self.refuse(with_data(location="data/good", offset=5), 5, "has 76 bytes, but the tensor needs 72 from byte 5 on")
        self.refuse(with_data(location="data/good", offset=2**64 - 1), 5, "but the tensor needs 72")
        self.refuse(with_data(location="data/good", offset=-1), 5, "not a number of bytes")
        self.refuse(with_data(location="data/good", offset=4, length=73), 5, "73 bytes, but the shape needs 72")
        self.file.write_bytes(with_data(location="data/good", offset=4, length=72))
        self.check_weights()

    def test_checksums_of_external_data(self):
        """The checksum is the SHA-1 of the whole file (onnx.proto)."""
        self.write_data(self.folder / "good")
        right = hashlib.sha1((self.folder / "good").read_bytes()).hexdigest()
        for checksum in (right, right.upper()):
            self.file.write_bytes(with_data(location="good", offset=4, checksum=checksum))
            self.check_weights()
        wrong = hashlib.sha1(b"other").hexdigest()
        self.refuse(with_data(location="good", offset=4, checksum=wrong), 5, f"its SHA-1 is {right}, and the model says {wrong}")
        for checksum in ("12", "z" * 40, "\x1b[31m" + "0" * 35):
            self.refuse(with_data(location="good", offset=4, checksum=checksum), 5, "is no SHA-1 in hexadecimal digits")
        with (self.folder / "sparse").open("wb") as file:
            file.truncate(2**39)
        self.refuse(with_data(location="sparse", offset=4, checksum=right), 5, "too large to compare its checksum")

    def test_links_to_external_data_in_the_folder(self):
        self.write_data(self.folder / "data" / "good")
        (self.folder / "link").symlink_to(self.folder / "data" / "good")
        (self.folder / "again").symlink_to("link")
        (self.folder / "linked").symlink_to("data")
        os.link(self.folder / "data" / "good", self.folder / "hard")
        for location in ("link", "again", "linked/good", "hard", "./data//good"):
            with self.subTest(location):
                self.file.write_bytes(with_data(location=location, offset=4))
                self.check_weights()
        # A hard link is a file like others, wherever its other names are.
        self.write_data(self.outside / "elsewhere")
        os.link(self.outside / "elsewhere", self.folder / "other")
        self.file.write_bytes(with_data(location="other", offset=4))
        self.check_weights()

    def test_external_data_in_a_cache_of_hugging_face(self):
        """snapshots/REVISION has links to files that are named after their contents, which lie in one folder."""
        cache = self.outside / "models--test"
        snapshot = cache / "snapshots" / "0123abcd"
        snapshot.mkdir(parents=True)
        self.write_data(cache / "blobs" / "fedc")
        (cache / "blobs" / "ba98").write_bytes(with_data(location="model.onnx_data", offset=4))
        (snapshot / "model.onnx").symlink_to("../../blobs/ba98")
        (snapshot / "model.onnx_data").symlink_to("../../blobs/fedc")
        self.check_weights(snapshot / "model.onnx")
        # A file in a subfolder, and links to folders.
        (snapshot / "onnx").mkdir()
        (snapshot / "onnx" / "model.onnx").symlink_to("../../../blobs/ba98")
        (snapshot / "onnx" / "model.onnx_data").symlink_to("../../../blobs/fedc")
        self.check_weights(snapshot / "onnx" / "model.onnx")
        (self.folder / "latest").symlink_to(snapshot)
        self.check_weights(self.folder / "latest" / "model.onnx")
        # What lies elsewhere stays out of reach, also for a model that is a link itself.
        self.write_data(self.outside / "secret")
        self.write_data(cache / "blobs" / "deep" / "secret")
        for target in ("../../../secret", "../../blobs/deep/secret"):
            (snapshot / "model.onnx_data").unlink()
            (snapshot / "model.onnx_data").symlink_to(target)
            done = self.run_import_of(snapshot / "model.onnx")
            self.assertEqual(done.returncode, 5, done.stderr)
            self.assertIn("nor beside the file that the model's own name stands for", done.stderr)

    def test_a_link_to_a_model_with_external_data(self):
        self.write_data(self.outside / "models" / "weights")
        self.file.write_bytes(with_data(location="weights", offset=4))
        link = self.outside / "link.onnx"
        link.symlink_to(self.file)
        self.check_weights(link)


if __name__ == "__main__":
    unittest.main()
