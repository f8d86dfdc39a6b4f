// The kinds of ONNX nodes that can be imported. Each function adds layers for a node, or makes its output known without
// one; it throws NodeRefused with the reason if it cannot.
#pragma once

#include <cmath>
#include <cstdint>
#include <string>
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

// Sliding windows, and padding (windows.cc).
void import_conv(GraphImport& graph, NodeReader& node);
void import_max_pool(GraphImport& graph, NodeReader& node);
void import_average_pool(GraphImport& graph, NodeReader& node);
void import_global_average_pool(GraphImport& graph, NodeReader& node);
void import_global_max_pool(GraphImport& graph, NodeReader& node);
void import_pad(GraphImport& graph, NodeReader& node);

// Normalization (normalization.cc).
void import_batch_norm(GraphImport& graph, NodeReader& node);
void import_lrn(GraphImport& graph, NodeReader& node);
void import_softmax(GraphImport& graph, NodeReader& node);

// Products with matrices, and tables (matrices.cc).
void import_gemm(GraphImport& graph, NodeReader& node);
void import_matmul(GraphImport& graph, NodeReader& node);
void import_gather(GraphImport& graph, NodeReader& node);

// Functions of each element (activations.cc).
void import_activation(GraphImport& graph, NodeReader& node);
void import_clip(GraphImport& graph, NodeReader& node);
void import_hard_sigmoid(GraphImport& graph, NodeReader& node);
void import_leaky_relu(GraphImport& graph, NodeReader& node);
void import_prelu(GraphImport& graph, NodeReader& node);
void import_gelu(GraphImport& graph, NodeReader& node);
void import_erf(GraphImport& graph, NodeReader& node);

// Sums and products of two values, and factors (arithmetic.cc).
void import_add(GraphImport& graph, NodeReader& node);
void import_sub(GraphImport& graph, NodeReader& node);
void import_mul(GraphImport& graph, NodeReader& node);
void import_div(GraphImport& graph, NodeReader& node);
void import_neg(GraphImport& graph, NodeReader& node);

// Shapes (shapes.cc), and sums over axes.
void import_flatten(GraphImport& graph, NodeReader& node);
void import_reshape(GraphImport& graph, NodeReader& node);
void import_squeeze(GraphImport& graph, NodeReader& node);
void import_unsqueeze(GraphImport& graph, NodeReader& node);
void import_transpose(GraphImport& graph, NodeReader& node);
void import_shape(GraphImport& graph, NodeReader& node);
void import_identity(GraphImport& graph, NodeReader& node);
void import_cast(GraphImport& graph, NodeReader& node);
void import_cast_like(GraphImport& graph, NodeReader& node);
void import_concat(GraphImport& graph, NodeReader& node);
void import_reduce_mean(GraphImport& graph, NodeReader& node);
void import_reduce_sum(GraphImport& graph, NodeReader& node);

// Dropout (dropout/dropout.cc).
void import_dropout(GraphImport& graph, NodeReader& node);
void import_expand(GraphImport& graph, NodeReader& node);
void import_random_uniform_like(GraphImport& graph, NodeReader& node);
void import_less(GraphImport& graph, NodeReader& node);
// These return false if the value, or the mask, is no random noise.
bool scale_noise(GraphImport& graph, const NodeReader& node, const Value& value, float factor);
bool drop_out(GraphImport& graph, const NodeReader& node, const Value& value, const Value& mask);

// Computes the output of a node whose inputs are constants, if its kind is one that files use for shapes and weights
// (folding/folding.cc). Returns false if it is not.
bool fold(GraphImport& graph, NodeReader& node);

// The output of a Shape node: the part of `dims` that its attributes name, all of it by default.
Constant shape_constant(NodeReader& node, const std::vector<std::int64_t>& dims);

}  // namespace arbalest::jobs
