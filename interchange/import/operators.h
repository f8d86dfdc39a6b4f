// The kinds of ONNX nodes that can be imported. An Operator adds layers for a node, or makes its output known without
// one; it throws NodeRefused with the reason if it cannot.
#pragma once

#include <cmath>
#include <cstdint>
#include <map>
#include <string>
#include <string_view>
#include <vector>

#include "interchange/import/graph/graph_import.h"

namespace arbalest::jobs {

using Operator = void (*)(GraphImport&, NodeReader&);

inline constexpr std::int64_t kMostPixels = 1 << 20;  // of a length; larger ones fit no layer, and no sum overflows

// Whether a constant of a formula has the expected value, up to the rounding of the program that wrote it.
// Files in half precision hold rounded constants.
inline bool is_about(float value, float expected) {
  return std::abs(value - expected) <= 1e-5F * std::abs(expected) ||
         value == rounded_to(onnx::Tensor::FLOAT16, expected) || value == rounded_to(onnx::Tensor::BFLOAT16, expected);
}

// Null if the kind cannot be imported.
Operator find_operator(const std::string& kind);

// The kinds of nodes of each family, by name. interchange/operators has a file for each family, with its export.
using OperatorTable = std::map<std::string_view, Operator>;
const OperatorTable& activation_operators();  // functions of each element
const OperatorTable& arithmetic_operators();  // sums and products of two values, and factors
const OperatorTable& dropout_operators();
const OperatorTable& matrix_operators();  // products with matrices, and tables
const OperatorTable& normalization_operators();
const OperatorTable& padding_operators();
const OperatorTable& shape_operators();   // shapes, and sums over axes
const OperatorTable& window_operators();  // sliding windows

// Makes the node's first input its output.
void import_identity(GraphImport& graph, NodeReader& node);

// These return false if the value, or the mask, is no random noise.
bool scale_noise(GraphImport& graph, const NodeReader& node, const Value& value, float factor);
bool drop_out(GraphImport& graph, const NodeReader& node, const Value& value, const Value& mask);

// Computes the output of a node whose inputs are constants, if its kind is one that files use for shapes and weights
// (folding/folding.cc). Returns false if it is not.
bool fold(GraphImport& graph, NodeReader& node);

// The output of a Shape node: the part of `dims` that its attributes name, all of it by default.
Constant shape_constant(NodeReader& node, const std::vector<std::int64_t>& dims);

}  // namespace arbalest::jobs
