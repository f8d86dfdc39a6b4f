"""Computes an ONNX model in double precision, with the operators of ONNX's authors (onnx.reference).

Four operators are written here instead. onnx.reference 1.23 pools with Python loops over all windows, its LRN reads as
many channels as there are examples, and its BatchNormalization of operator set 13 mixes in the mini-batch's statistics.
"""

import numpy as np
import onnx
from numpy.lib.stride_tricks import sliding_window_view
from onnx import numpy_helper
from onnx.reference import ReferenceEvaluator
from onnx.reference.op_run import OpRun

FLOAT, DOUBLE = onnx.TensorProto.FLOAT, onnx.TensorProto.DOUBLE


def windows_of(x, kernel, pads, strides, padding):
    """All windows over images [n, c, h, w]: [n, c, out h, out w, kernel h, kernel w]."""
    above, left, below, right = pads
    padded = np.pad(x, ((0, 0), (0, 0), (above, below), (left, right)), constant_values=padding)
    return sliding_window_view(padded, kernel, axis=(2, 3))[:, :, :: strides[0], :: strides[1]]


class MaxPool(OpRun):
    op_domain = ""

    def _run(self, x, kernel_shape=None, pads=None, strides=None, **other):
        expect_defaults(other)
        return (windows_of(x, kernel_shape, pads, strides, -np.inf).max(axis=(4, 5)),)


class AveragePool(OpRun):
    op_domain = ""

    def _run(self, x, kernel_shape=None, pads=None, strides=None, count_include_pad=None, **other):
        expect_defaults(other)
        sums = windows_of(x, kernel_shape, pads, strides, 0.0).sum(axis=(4, 5))
        pixels = np.ones((1, 1, *x.shape[2:]))
        counts = windows_of(pixels, kernel_shape, pads, strides, float(bool(count_include_pad))).sum(axis=(4, 5))
        return (sums / counts,)


class BatchNormalization(OpRun):
    op_domain = ""

    def _run(self, x, scale, bias, mean, variance, epsilon=None, **other):
        other.pop("momentum")  # has no effect on inference
        expect_defaults(other)
        scale, bias, mean, variance = (each.reshape(-1, *[1] * (x.ndim - 2)) for each in (scale, bias, mean, variance))
        return ((x - mean) / np.sqrt(variance + epsilon) * scale + bias,)


class LRN(OpRun):
    op_domain = ""

    def _run(self, x, alpha=None, beta=None, bias=None, size=None):
        before = (size - 1) // 2
        squares = np.pad(x * x, ((0, 0), (before, size - 1 - before), (0, 0), (0, 0)))
        sums = sliding_window_view(squares, size, axis=1).sum(axis=4)
        return (x / (bias + alpha / size * sums) ** beta,)


def expect_defaults(attributes):
    """Refuses attributes that our files do not set."""
    given = {name: value for name, value in attributes.items()
             if value not in (None, 0, "NOTSET") and list(np.ravel(value)) != [1, 1]}
    if given:
        raise NotImplementedError(f"attributes {given}")


def in_double(model):
    """The model with all numbers of float32 as float64."""
    wide = onnx.ModelProto()
    wide.CopyFrom(model)
    for tensor in wide.graph.initializer:
        if tensor.data_type == FLOAT:
            tensor.CopyFrom(numpy_helper.from_array(numpy_helper.to_array(tensor).astype(np.float64), tensor.name))
    for value in (*wide.graph.input, *wide.graph.output, *wide.graph.value_info):
        if value.type.tensor_type.elem_type == FLOAT:
            value.type.tensor_type.elem_type = DOUBLE
    return wide


def output_in_double(model, examples, output):
    """The output of that name, float64, computed from examples of float32 or int64."""
    evaluator = ReferenceEvaluator(in_double(model), new_ops=[MaxPool, AveragePool, BatchNormalization, LRN])
    wide = examples.astype(np.float64) if examples.dtype == np.float32 else examples
    values = evaluator.run(None, {model.graph.input[0].name: wide}, intermediate=True)
    narrow = [name for name, value in values.items() if value is not None and value.dtype in (np.float32, np.float16)]
    if narrow:
        raise AssertionError(f"these values are not computed in double precision: {narrow}")
    return values[output]
