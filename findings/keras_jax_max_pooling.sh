#!/usr/bin/env bash
# Keras 3.15.1 with the backend JAX 0.10.2: an ONNX file of a model with MaxPooling2D does not run in ONNX Runtime 1.32.0,
# although export() (jax2onnx 0.17.1) succeeds and onnx 1.23.2 finds the file valid.
#
# jax2onnx adds two dimensions to the image, and lets MaxPool slide over all four others: examples, rows, columns,
# channels. ONNX allows that. ONNX Runtime pools over three dimensions at most, and says so only when the model runs;
# onnx.reference pools over three at most, too. AveragePooling2D becomes a convolution, which both compute.
#
# The program exports one MaxPooling2D(2). Seen:
#   checked by onnx
#   kernel_shape [1, 2, 2, 1]
#   ONNX Runtime: Unsupported pooling size
#   onnx.reference: Not implemented yet for shape (1, 1, 2, 4, 4, 3).
#
# Exit codes: 0 this is what happens, 1 it is not, or the packages cannot be installed.
set -euo pipefail

folder=$(mktemp -d)
trap 'rm -rf -- "$folder"' EXIT
python3 -m venv "$folder/venv"
"$folder/venv/bin/python" -m pip install --quiet --disable-pip-version-check keras==3.15.1 jax==0.10.2 jax2onnx==0.17.1 \
  onnx==1.23.2 onnxruntime==1.32.0 numpy==2.4.6
cat > "$folder/pooling.py" <<'PYTHON'
import sys

import keras
import numpy as np
import onnx
import onnxruntime
from onnx.reference import ReferenceEvaluator

image = keras.Input((4, 4, 3), name="image")
model = keras.Model(image, keras.layers.MaxPooling2D(2)(image))
images = np.random.default_rng(1).standard_normal((2, 4, 4, 3), np.float32)
model(images)  # export() asks for a call before
model.export(sys.argv[1], format="onnx", verbose=False)
onnx.checker.check_model(onnx.load(sys.argv[1]), full_check=True)
print("checked by onnx")
(pool,) = [node for node in onnx.load(sys.argv[1]).graph.node if node.op_type == "MaxPool"]
print("kernel_shape", [list(each.ints) for each in pool.attribute if each.name == "kernel_shape"][0])
try:
    onnxruntime.InferenceSession(sys.argv[1]).run(None, {"image": images})
    print("ONNX Runtime runs it")
except Exception as error:
    print("ONNX Runtime:", "Unsupported pooling size" if "Unsupported pooling size" in str(error) else error)
try:
    ReferenceEvaluator(sys.argv[1]).run(None, {"image": images})
    print("onnx.reference runs it")
except RuntimeError as error:
    print("onnx.reference:", error)
PYTHON
KERAS_BACKEND=jax KERAS_HOME=$folder "$folder/venv/bin/python" "$folder/pooling.py" "$folder/model.onnx" \
  2> "$folder/log" | tee "$folder/seen" || { cat "$folder/log" >&2; exit 1; }
diff "$folder/seen" - <<'SEEN'
checked by onnx
kernel_shape [1, 2, 2, 1]
ONNX Runtime: Unsupported pooling size
onnx.reference: Not implemented yet for shape (1, 1, 2, 4, 4, 3).
SEEN
