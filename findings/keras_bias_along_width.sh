#!/usr/bin/env bash
# Keras 3.15.1 on TensorFlow 2.21.0 (Python package tensorflow-cpu) with channels first: the bias of a convolution is
# added along the width of the image, not to the channels, where the width of its output equals the number of its filters.
#
# keras.ops.add takes any second operand with one dimension above 1 for a bias, and looks at the last dimension of the
# first operand before the second one, whatever the shapes say. NumPy's broadcasting, and the JAX and PyTorch backends,
# add it to the channels. Nothing warns; a model gives other results as soon as an image has another width.
#
# The program adds the bias [0, 1, 2, 3] of 4 filters to zeros. Seen, for one row of each channel:
#   width 3 [[0, 0, 0], [1, 1, 1], [2, 2, 2], [3, 3, 3]]
#   width 4 [[0, 1, 2, 3], [0, 1, 2, 3], [0, 1, 2, 3], [0, 1, 2, 3]]
# Right would be, with width 4: [[0, 0, 0, 0], [1, 1, 1, 1], [2, 2, 2, 2], [3, 3, 3, 3]]
#
# Exit codes: 0 this is what happens, 1 it is not, or the packages cannot be installed.
set -euo pipefail

folder=$(mktemp -d)
trap 'rm -rf -- "$folder"' EXIT
python3 -m venv "$folder/venv"
"$folder/venv/bin/python" -m pip install --quiet --disable-pip-version-check keras==3.15.1 tensorflow-cpu==2.21.0 numpy==2.4.6
cat > "$folder/bias.py" <<'PYTHON'
import numpy as np
import keras

bias = lambda shape, dtype=None: np.arange(4, dtype="float32")
convolution = keras.layers.Conv2D(4, 1, data_format="channels_first", bias_initializer=bias)
for width in (3, 4):
    output = convolution(np.zeros((1, 2, 5, width), "float32"))  # [examples, channels, height, width]
    print("width", width, np.array(output)[0, :, 0, :].astype(int).tolist())
PYTHON
KERAS_BACKEND=tensorflow KERAS_HOME=$folder CUDA_VISIBLE_DEVICES='' TF_CPP_MIN_LOG_LEVEL=3 \
  "$folder/venv/bin/python" "$folder/bias.py" 2> "$folder/log" | tee "$folder/seen" || { cat "$folder/log" >&2; exit 1; }
diff "$folder/seen" - <<'SEEN'
width 3 [[0, 0, 0], [1, 1, 1], [2, 2, 2], [3, 3, 3]]
width 4 [[0, 1, 2, 3], [0, 1, 2, 3], [0, 1, 2, 3], [0, 1, 2, 3]]
SEEN
