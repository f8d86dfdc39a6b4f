#!/usr/bin/env bash
# safetensors 0.8.0: safetensors.numpy.save_file writes a transposed NumPy array with its elements in the wrong order.
#
# It takes the array's bytes as they lie in memory, and the shape of the transposed array. Nothing is raised, and load_file
# gives other numbers than were saved. This is how the weights of Keras' dense layers (kernel.T) become noise. The
# docstring asks for contiguous tensors; safetensors.torch.save_file refuses others with a message. Known upstream:
# safetensors/safetensors, issue 825, which says that 0.7.0 stored such arrays rightly.
#
# The program saves the transposed [[0, 1, 2], [3, 4, 5]] as it is, and as np.ascontiguousarray makes it. Seen:
#   saved  [[0, 3], [1, 4], [2, 5]]
#   loaded [[0, 1], [2, 3], [4, 5]]
#   copied [[0, 3], [1, 4], [2, 5]]
#
# Exit codes: 0 this is what happens, 1 it is not, or the packages cannot be installed.
set -euo pipefail

folder=$(mktemp -d)
trap 'rm -rf -- "$folder"' EXIT
python3 -m venv "$folder/venv"
"$folder/venv/bin/python" -m pip install --quiet --disable-pip-version-check safetensors==0.8.0 numpy==2.4.6
cat > "$folder/transposed.py" <<'PYTHON'
import sys

import numpy as np
from safetensors.numpy import load_file, save_file

array, file = np.arange(6, dtype=np.float32).reshape(2, 3).T, sys.argv[1]
print("saved ", array.astype(int).tolist())
save_file({"array": array}, file)
print("loaded", load_file(file)["array"].astype(int).tolist())
save_file({"array": np.ascontiguousarray(array)}, file)
print("copied", load_file(file)["array"].astype(int).tolist())
PYTHON
"$folder/venv/bin/python" "$folder/transposed.py" "$folder/array.safetensors" | tee "$folder/seen"
diff "$folder/seen" - <<'SEEN'
saved  [[0, 3], [1, 4], [2, 5]]
loaded [[0, 1], [2, 3], [4, 5]]
copied [[0, 3], [1, 4], [2, 5]]
SEEN
