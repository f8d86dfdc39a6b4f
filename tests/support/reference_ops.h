// Reference implementations of every operator: plain loops in double precision on tensors in canonical order. They
// follow the formulas in engine/ops/*.h and share no code with the engine. reference_ops_test.cc checks their gradients
// by central differences.
#pragma once

#include <cstdint>
#include <vector>

#include "engine/base/shape.h"
#include "engine/ops/activation.h"
#include "engine/ops/pool2d.h"
#include "engine/ops/window.h"

namespace arbalest::tests {

using Values = std::vector<double>;
using Labels = std::vector<std::int32_t>;

// Gradients of <output, output_gradient> with respect to the layer's operands.
struct LinearGradients {
  Values input;
  Values weights;
  Values bias;
};

// An empty bias means no bias. Weights are [filters, channels / groups, ...], group after group.
engine::Shape conv2d_shape(const engine::Shape& input, std::int64_t filters, const engine::Window& window);
Values conv2d(const engine::Shape& shape, const Values& input, const Values& weights, const Values& bias,
              std::int64_t filters, const engine::Window& window, std::int64_t groups = 1);
LinearGradients conv2d_gradients(const engine::Shape& shape, const Values& input, const Values& weights,
                                 std::int64_t filters, const engine::Window& window, const Values& output_gradient,
                                 std::int64_t groups = 1);

Values dense(std::int64_t examples, const Values& input, const Values& weights, const Values& bias, std::int64_t units);
LinearGradients dense_gradients(std::int64_t examples, const Values& input, const Values& weights, std::int64_t units,
                                const Values& output_gradient);

// `count_padding`: padding counts as zeros in averages.
Values pool2d(const engine::Shape& shape, const Values& input, engine::PoolKind kind, const engine::Window& window,
              bool count_padding = false);
Values pool2d_gradient(const engine::Shape& shape, const Values& input, engine::PoolKind kind,
                       const engine::Window& window, const Values& output_gradient, bool count_padding = false);

Values activation(const Values& input, const engine::ActivationFunction& f);
// `read`: the function's output, or its input if the derivative is computed from the input.
Values activation_gradient(const Values& read, const engine::ActivationFunction& f, const Values& output_gradient);

// concat joins tensors of `shapes` along axis 1. split is the inverse and returns the parts of `joined`.
Values concat(const std::vector<engine::Shape>& shapes, const std::vector<Values>& inputs);
std::vector<Values> split(const std::vector<engine::Shape>& shapes, const Values& joined);

Values padded_shortcut(const engine::Shape& shape, const Values& input, std::int64_t channels, std::int64_t stride);
Values padded_shortcut_gradient(const engine::Shape& shape, std::int64_t channels, std::int64_t stride,
                                const Values& output_gradient);

struct BatchNormReference {
  Values output;  // before any activation
  Values mean;
  Values variance;           // biased
  Values unbiased_variance;  // divided by N - 1
};
// `shape`: [n, c] or [n, c, h, w]. batch_norm uses the mini-batch's statistics, batch_norm_by the given ones.
BatchNormReference batch_norm(const engine::Shape& shape, const Values& input, const Values& scale, const Values& shift,
                              double epsilon);
Values batch_norm_by(const engine::Shape& shape, const Values& input, const Values& scale, const Values& shift,
                     const Values& mean, const Values& variance, double epsilon);
// Uses the mini-batch's statistics. In the result, `weights` holds the gradient of scale, `bias` the gradient of shift.
LinearGradients batch_norm_gradients(const engine::Shape& shape, const Values& input, const Values& scale,
                                     double epsilon, const Values& output_gradient);

// Returns the factor of each element: 0 if it is dropped, else 1 / (1 - ratio).
Values dropout_factors(std::int64_t elements, double ratio, std::uint32_t layer, std::uint64_t seed,
                       std::uint64_t task);

// Returns the sum of the losses of labeled examples. The gradient function differentiates their mean.
double softmax_cross_entropy(std::int64_t classes, const Values& logits, const Labels& labels, double smoothing = 0.0);
Values softmax_cross_entropy_gradient(std::int64_t classes, const Values& logits, const Labels& labels,
                                      double smoothing = 0.0);

// Looks up rows of a table [rows, width]. embedding_gradient returns the gradient of the table.
Values embedding(std::int64_t width, const Values& table, const Labels& ids);
Values embedding_gradient(std::int64_t rows, std::int64_t width, const Labels& ids, const Values& output_gradient);

// `a` and `b` are [examples, features]. The gradients of a, b and the bias are in `input`, `weights` and `bias`.
Values inner_product(std::int64_t features, const Values& a, const Values& b, double bias);
LinearGradients inner_product_gradients(std::int64_t features, const Values& a, const Values& b,
                                        const Values& output_gradient);

// Returns the sum of the losses of labeled examples: those whose label is not NaN. The gradient function differentiates
// their mean.
double squared_error(const Values& predictions, const Values& labels);
Values squared_error_gradient(const Values& predictions, const Values& labels);

Values softmax(std::int64_t classes, const Values& logits);
Values softmax_gradient(std::int64_t classes, const Values& logits, const Values& output_gradient);

// Returns the number of labeled examples whose label is among the `most` largest logits. Among equal logits, the first
// counts as the largest.
std::int64_t count_correct(std::int64_t classes, const Values& logits, const Labels& labels, int most = 1);

}  // namespace arbalest::tests
