#!/usr/bin/env bash
# Makes a Python environment with Keras and a backend, which writes the files in keras_files. No test needs it.
#
#   tests/interchange/keras_environment.sh jax|tensorflow|torch DIR
#   KERAS_BACKEND=jax DIR/bin/python tests/interchange/keras_files/write_files.py
#
# Exit codes: 0 they are installed, 1 they cannot be installed, 2 usage, or DIR exists.
set -euo pipefail

case ${1:-} in
  jax) packages="jax==0.10.2 jax2onnx==0.17.1" ;;
  tensorflow) packages="tensorflow-cpu==2.21.0 tf2onnx==1.17.0 onnxconverter-common==1.16.0" ;;
  torch) packages="torch==2.15.0 onnxscript==0.7.2" ;;
  *) packages="" ;;
esac
if [ $# -ne 2 ] || [ -z "$packages" ]; then
  sed -n '2,7s/^# \{0,1\}//p' "$0" >&2
  exit 2
fi
here=$(cd "$(dirname "${BASH_SOURCE[0]}")" && pwd)
# shellcheck disable=SC2086  # a list
exec "$here/../support/python_environment.sh" "$2" numpy==2.4.6 onnx==1.23.2 keras==3.15.1 $packages
