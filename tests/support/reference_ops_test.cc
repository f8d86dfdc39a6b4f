#include "tests/support/reference_ops.h"

#include "tests/support/catch.h"
#include "tests/support/numbers.h"

namespace arbalest::tests {
namespace {

using engine::ActivationFunction;
using engine::ActivationKind;
using engine::PoolKind;
using engine::Shape;
using engine::Window;

constexpr double kTolerance = 1e-7;

TEST_CASE("reference convolution: a hand-computed example") {
  // 1 2      1 0      1*1 + 4*2 = 9, plus bias
  // 3 4   *  0 2
  CHECK(conv2d({1, 1, 2, 2}, {1, 2, 3, 4}, {1, 0, 0, 2}, {0.5}, 1, {{2, 2}, {1, 1}, {0, 0}}) == Values{9.5});
}

TEST_CASE("reference convolution: a group sees its own channels, a dilated kernel every second pixel") {
  CHECK(conv2d({1, 4, 1, 1}, {1, 2, 3, 4}, {1, 10, 1, 10}, {}, 2, {}, 2) == Values{21, 43});
  CHECK(conv2d({1, 2, 1, 1}, {1, 2}, {1, 10, 100, 1000}, {}, 4, {}, 2) == Values{1, 10, 200, 2000});
  const Window dilated{.kernel = {1, 2}, .stride = {1, 1}, .dilation = {1, 2}};
  CHECK(conv2d({1, 1, 1, 4}, {1, 2, 3, 4}, {1, 10}, {}, 1, dilated) == Values{31, 42});
  const Window extra{.kernel = {1, 2}, .stride = {1, 2}, .extra_padding = {0, 1}};
  CHECK(conv2d({1, 1, 1, 3}, {1, 2, 3}, {1, 10}, {}, 1, extra) == Values{21, 3});
  const Window before{.kernel = {1, 2}, .stride = {1, 2}, .padding = {0, 1}, .extra_padding = {0, -1}};
  CHECK(conv2d({1, 1, 1, 3}, {1, 2, 3}, {1, 10}, {}, 1, before) == Values{10, 32});
}

TEST_CASE("reference convolution: gradients agree with central differences") {
  const Window window =
      GENERATE(Window{{3, 3}, {1, 1}, {1, 1}}, Window{{2, 3}, {2, 1}, {0, 1}},
               Window{{3, 2}, {2, 1}, {1, 0}, {1, 1}, {1, 2}}, Window{{3, 3}, {1, 2}, {2, 1}, {-1, -1}});
  const std::int64_t groups = GENERATE(1, 2, 4);
  const Shape shape{2, 4, 5, 4};
  const std::int64_t filters = 4;
  const Values input = random_values(shape.elements(), 1);
  const Values weights = random_values(filters * shape[1] / groups * window.kernel.height * window.kernel.width, 2);
  const Values bias = random_values(filters, 3);
  const Values direction = random_values(conv2d_shape(shape, filters, window).elements(), 4);

  const LinearGradients gradients = conv2d_gradients(shape, input, weights, filters, window, direction, groups);
  const auto of_input = [&](const Values& x) {
    return dot(conv2d(shape, x, weights, bias, filters, window, groups), direction);
  };
  const auto of_weights = [&](const Values& w) {
    return dot(conv2d(shape, input, w, bias, filters, window, groups), direction);
  };
  const auto of_bias = [&](const Values& b) {
    return dot(conv2d(shape, input, weights, b, filters, window, groups), direction);
  };
  CHECK(relative_error(gradients.input, central_differences(of_input, input)) < kTolerance);
  CHECK(relative_error(gradients.weights, central_differences(of_weights, weights)) < kTolerance);
  CHECK(relative_error(gradients.bias, central_differences(of_bias, bias)) < kTolerance);
}

TEST_CASE("reference dense layer: gradients agree with central differences") {
  const Values input = random_values(3 * 7, 1);
  const Values weights = random_values(4 * 7, 2);
  const Values bias = random_values(4, 3);
  const Values direction = random_values(3 * 4, 4);
  CHECK(dense(1, {1, 2}, {3, 4}, {5}, 1) == Values{16});

  const LinearGradients gradients = dense_gradients(3, input, weights, 4, direction);
  const auto of_input = [&](const Values& x) { return dot(dense(3, x, weights, bias, 4), direction); };
  const auto of_weights = [&](const Values& w) { return dot(dense(3, input, w, bias, 4), direction); };
  const auto of_bias = [&](const Values& b) { return dot(dense(3, input, weights, b, 4), direction); };
  CHECK(relative_error(gradients.input, central_differences(of_input, input)) < kTolerance);
  CHECK(relative_error(gradients.weights, central_differences(of_weights, weights)) < kTolerance);
  CHECK(relative_error(gradients.bias, central_differences(of_bias, bias)) < kTolerance);
}

TEST_CASE("reference pooling: padding is never the maximum and does not count in averages") {
  const Window window{{2, 2}, {2, 2}, {1, 1}};
  const Values input{-1, -2, -3, -4};
  CHECK(pool2d({1, 1, 2, 2}, input, PoolKind::kMax, window) == input);
  CHECK(pool2d({1, 1, 2, 2}, input, PoolKind::kAverage, window) == input);
}

TEST_CASE("reference pooling: count_padding counts padding as zeros in averages") {
  const Window window{{2, 2}, {2, 2}, {1, 1}};
  CHECK(pool2d({1, 1, 2, 2}, {-4, -8, -12, -16}, PoolKind::kAverage, window, true) == Values{-1, -2, -3, -4});
}

TEST_CASE("reference pooling: gradients agree with central differences") {
  const PoolKind kind = GENERATE(PoolKind::kMax, PoolKind::kAverage);
  const Window window =
      GENERATE(Window{{2, 2}, {2, 2}, {0, 0}}, Window{{3, 3}, {2, 1}, {1, 1}}, Window{{3, 2}, {2, 2}, {0, 0}, {1, 1}});
  const bool count_padding = GENERATE(false, true);
  const Shape shape{2, 2, 6, 5};
  const Values input = random_values(shape.elements(), 5);
  const Values direction = random_values(conv2d_shape(shape, shape[1], window).elements(), 6);
  const auto of_input = [&](const Values& x) { return dot(pool2d(shape, x, kind, window, count_padding), direction); };
  CHECK(relative_error(pool2d_gradient(shape, input, kind, window, direction, count_padding),
                       central_differences(of_input, input)) < kTolerance);
}

TEST_CASE("reference concatenation and shortcuts: hand-computed examples") {
  CHECK(concat({{2, 1}, {2, 2}}, {{1, 4}, {2, 3, 5, 6}}) == Values{1, 2, 3, 4, 5, 6});
  CHECK(split({{2, 1}, {2, 2}}, {1, 2, 3, 4, 5, 6}) == std::vector<Values>{{1, 4}, {2, 3, 5, 6}});
  CHECK(padded_shortcut({1, 1, 3, 2}, {1, 2, 3, 4, 5, 6}, 4, 2) == Values{0, 0, 1, 5, 0, 0, 0, 0});
  CHECK(padded_shortcut_gradient({1, 1, 3, 2}, 4, 2, {9, 9, 1, 2, 9, 9, 9, 9}) == Values{1, 0, 0, 0, 2, 0});
}

TEST_CASE("reference activations: gradients agree with central differences") {
  const ActivationFunction f =
      GENERATE(as<ActivationFunction>{}, ActivationKind::kRelu, ActivationKind::kTanh, ActivationKind::kSigmoid,
               ActivationFunction(ActivationKind::kLeakyRelu, 0.25F), ActivationKind::kGelu, ActivationKind::kSilu,
               ActivationKind::kRelu6, ActivationKind::kHardSwish);
  Values input = random_values(40, 7);
  if (f.kind == ActivationKind::kRelu6 || f.kind == ActivationKind::kHardSwish) {
    for (double& value : input) value *= 12.0;  // some of them beyond the bounds
  }
  const Values direction = random_values(40, 8);
  const auto of_input = [&](const Values& x) { return dot(activation(x, f), direction); };
  const Values read = differentiates_input(f.kind) ? input : activation(input, f);
  CHECK(relative_error(activation_gradient(read, f, direction), central_differences(of_input, input)) < kTolerance);
}

TEST_CASE("reference batch norm: gradients agree with central differences") {
  const Shape shape = GENERATE(Shape{3, 2, 2, 3}, Shape{5, 4});
  const Values input = random_values(shape.elements(), 11);
  const Values scale = random_values(shape[1], 12);
  const Values shift = random_values(shape[1], 13);
  const Values direction = random_values(shape.elements(), 14);
  constexpr double kEpsilon = 1e-3;
  const LinearGradients gradients = batch_norm_gradients(shape, input, scale, kEpsilon, direction);
  const auto along = [&](const Values& x, const Values& a, const Values& b) {
    return dot(batch_norm(shape, x, a, b, kEpsilon).output, direction);
  };
  const auto of_input = [&](const Values& x) { return along(x, scale, shift); };
  const auto of_scale = [&](const Values& a) { return along(input, a, shift); };
  const auto of_shift = [&](const Values& b) { return along(input, scale, b); };
  CHECK(relative_error(gradients.input, central_differences(of_input, input)) < kTolerance);
  CHECK(relative_error(gradients.weights, central_differences(of_scale, scale)) < kTolerance);
  CHECK(relative_error(gradients.bias, central_differences(of_shift, shift)) < kTolerance);
}

TEST_CASE("reference batch norm: mean 0 and variance 1, by hand") {
  const BatchNormReference of = batch_norm({2, 1, 1, 2}, {1, 3, 5, 7}, {1}, {0}, 0.0);
  CHECK(of.mean == Values{4});
  CHECK(of.variance == Values{5});
  CHECK(of.unbiased_variance[0] == Approx(20.0 / 3.0));
  CHECK(of.output[3] == Approx(3.0 / std::sqrt(5.0)));
}

TEST_CASE("reference cross entropy: the gradient is that of the mean over labeled examples") {
  const Values logits = random_values(5 * 4, 9);
  const Labels labels{0, 3, -1, 2, 2};
  const double smoothing = GENERATE(0.0, 0.1);
  const auto mean = [&](const Values& a) { return softmax_cross_entropy(4, a, labels, smoothing) / 4.0; };
  CHECK(relative_error(softmax_cross_entropy_gradient(4, logits, labels, smoothing),
                       central_differences(mean, logits)) < kTolerance);
  // -(0.7 log p_0 + 0.1 (log p_1 + log p_2 + log p_3)) for p = 1/2, 1/4, 1/8, 1/8
  const double log2 = std::log(2.0);
  CHECK(softmax_cross_entropy(4, {0, -log2, -2 * log2, -2 * log2}, {0}, 0.4) == Approx((0.7 + 0.1 * 8) * log2));
  CHECK(softmax_cross_entropy(2, {0, 0}, {1}) == Approx(std::log(2.0)));
}

TEST_CASE("reference embedding: rows of the table, and gradients agree with central differences") {
  CHECK(embedding(2, {1, 2, 3, 4, 5, 6}, {2, 0, 2}) == Values{5, 6, 1, 2, 5, 6});
  const Labels ids{3, 0, 3, 3, 1};
  const Values table = random_values(5 * 4, 15);
  const Values direction = random_values(5 * 4, 16);
  const auto of_table = [&](const Values& w) { return dot(embedding(4, w, ids), direction); };
  CHECK(relative_error(embedding_gradient(5, 4, ids, direction), central_differences(of_table, table)) < kTolerance);
}

TEST_CASE("reference inner product: gradients agree with central differences") {
  CHECK(inner_product(2, {1, 2, 3, 4}, {10, 1, 1, 100}, 0.5) == Values{12.5, 403.5});
  const Values a = random_values(3 * 4, 17);
  const Values b = random_values(3 * 4, 18);
  const Values direction = random_values(3, 19);
  const LinearGradients gradients = inner_product_gradients(4, a, b, direction);
  const auto of_a = [&](const Values& x) { return dot(inner_product(4, x, b, 0.25), direction); };
  const auto of_b = [&](const Values& x) { return dot(inner_product(4, a, x, 0.25), direction); };
  const auto of_bias = [&](const Values& x) { return dot(inner_product(4, a, b, x[0]), direction); };
  CHECK(relative_error(gradients.input, central_differences(of_a, a)) < kTolerance);
  CHECK(relative_error(gradients.weights, central_differences(of_b, b)) < kTolerance);
  CHECK(relative_error(gradients.bias, central_differences(of_bias, {0.25})) < kTolerance);
}

TEST_CASE("reference squared error: the gradient is that of the mean over labeled examples") {
  const double none = std::nan("");
  CHECK(squared_error({1, 2, 3}, {0, none, 5}) == 5.0);
  const Values predictions = random_values(4, 20);
  const Values labels{0.5, -1.0, none, 2.0};
  const auto mean = [&](const Values& p) { return squared_error(p, labels) / 3.0; };
  CHECK(relative_error(squared_error_gradient(predictions, labels), central_differences(mean, predictions)) <
        kTolerance);
}

TEST_CASE("reference softmax: gradients agree with central differences") {
  const Values logits = random_values(5 * 4, 9);
  const Values direction = random_values(5 * 4, 10);
  const auto of_logits = [&](const Values& a) { return dot(softmax(4, a), direction); };
  CHECK(relative_error(softmax_gradient(4, logits, direction), central_differences(of_logits, logits)) < kTolerance);
  const Values p = softmax(2, {0, std::log(3.0)});
  CHECK(p[0] == Approx(0.25));
  CHECK(p[1] == Approx(0.75));
}

TEST_CASE("reference accuracy: top-k accuracy counts labels among the k largest logits") {
  CHECK(count_correct(4, {4, 3, 2, 1, 4, 3, 2, 1, 4, 3, 2, 1}, {0, 1, 2}, 2) == 2);
  CHECK(count_correct(3, {1, 1, 1, 1, 1, 1}, {1, 2}, 2) == 1);
}

TEST_CASE("reference accuracy: ties go to the first, NaN never wins") {
  const double nan = std::nan("");
  CHECK(count_correct(2, {1, 1, 0, 2, nan, -5, nan, nan}, {0, 1, 1, 0}) == 3);
  CHECK(count_correct(2, {1, 1, 0, 2}, {1, -1}) == 0);
}

}  // namespace
}  // namespace arbalest::tests
