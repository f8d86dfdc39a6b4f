"""Writes ONNX files without the package onnx: the bytes of protobuf messages, by their field numbers."""

import struct

FLOAT, INT64 = 1, 7  # types of elements


def varint(value):
    value &= (1 << 64) - 1
    bytes_ = bytearray()
    while value > 127:
        bytes_.append(value & 127 | 128)
        value >>= 7
    bytes_.append(value)
    return bytes(bytes_)


def number(field, value):
    return varint(field << 3) + varint(value)


def block(field, content):
    content = content.encode() if isinstance(content, str) else content
    return varint(field << 3 | 2) + varint(len(content)) + content


def tensor(name, dims, values=(), kind=FLOAT, raw=None):
    if raw is None:
        raw = struct.pack(f"<{len(values)}{'f' if kind == FLOAT else 'q'}", *values)
    return b"".join(number(1, extent) for extent in dims) + number(2, kind) + block(8, name) + block(9, raw)


def external_tensor(name, dims, **entries):
    pairs = b"".join(block(13, block(1, key) + block(2, str(value))) for key, value in entries.items())
    return b"".join(number(1, extent) for extent in dims) + number(2, FLOAT) + block(8, name) + pairs + number(14, 1)


def integer(name, value):
    return block(1, name) + number(3, value) + number(20, 2)


def integers(name, values):
    return block(1, name) + b"".join(number(8, value) for value in values) + number(20, 7)


def node(kind, inputs, output, *attributes, name=""):
    return (b"".join(block(1, value) for value in inputs) + block(2, output) + block(3, name) + block(4, kind) +
            b"".join(block(5, attribute) for attribute in attributes))


def value(name, dims, kind=FLOAT):
    extents = b"".join(block(1, number(1, extent) if isinstance(extent, int) else block(2, extent)) for extent in dims)
    return block(1, name) + block(2, block(1, number(1, kind) + block(2, extents)))


def model(nodes, tensors=(), inputs=(value("x", ["n", 6]),), outputs=(value("y", ["n", 3]),), opset=13, ir=7):
    graph = (b"".join(block(1, each) for each in nodes) + block(2, "graph") + b"".join(block(5, each) for each in tensors) +
             b"".join(block(11, each) for each in inputs) + b"".join(block(12, each) for each in outputs))
    return number(1, ir) + block(2, "test") + block(7, graph) + block(8, number(2, opset))


def linear(**changes):
    """A dense layer of 6 features and 3 classes."""
    parts = {
        "nodes": [node("Gemm", ["x", "fc.weight", "fc.bias"], "y", integer("transB", 1), name="fc")],
        "tensors": [tensor("fc.weight", [3, 6], [0.1 * k for k in range(18)]), tensor("fc.bias", [3], [1, 2, 3])],
    }
    return model(**{**parts, **changes})
