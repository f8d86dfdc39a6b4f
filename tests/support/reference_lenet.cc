#include "tests/support/reference_lenet.h"

namespace arbalest::tests {

namespace {

using engine::Shape;

constexpr engine::Window kConv{.kernel = {5, 5}, .stride = {1, 1}};
constexpr engine::Window kPool{.kernel = {2, 2}, .stride = {2, 2}};
constexpr std::int64_t kFilters[] = {20, 50};
constexpr std::int64_t kUnits[] = {500, 10};
constexpr auto kRelu = engine::ActivationKind::kRelu;

// Splits a flat vector into consecutive parts.
class Reader {
 public:
  explicit Reader(const Values& values) : next_(values.begin()) {}
  Values take(std::int64_t count) {
    const auto first = next_;
    next_ += count;
    return {first, next_};
  }

 private:
  Values::const_iterator next_;
};

void append(Values& to, const Values& from) { to.insert(to.end(), from.begin(), from.end()); }

}  // namespace

LossAndGradient reference_lenet(const Values& parameters, const Values& images, const Labels& labels) {
  const auto n = static_cast<std::int64_t>(labels.size());
  const Shape x{n, 1, 28, 28};
  const Shape a1{n, 20, 24, 24};
  const Shape p1{n, 20, 12, 12};
  const Shape a2{n, 50, 8, 8};
  constexpr std::int64_t kFeatures = 50 * 4 * 4;
  Reader reader(parameters);
  const Values w1 = reader.take(kFilters[0] * 25), b1 = reader.take(kFilters[0]);
  const Values w2 = reader.take(kFilters[1] * kFilters[0] * 25), b2 = reader.take(kFilters[1]);
  const Values w3 = reader.take(kUnits[0] * kFeatures), b3 = reader.take(kUnits[0]);
  const Values w4 = reader.take(kUnits[1] * kUnits[0]), b4 = reader.take(kUnits[1]);

  const Values conv1 = conv2d(x, images, w1, b1, kFilters[0], kConv);
  const Values pool1 = pool2d(a1, conv1, engine::PoolKind::kMax, kPool);
  const Values conv2 = conv2d(p1, pool1, w2, b2, kFilters[1], kConv);
  const Values pool2 = pool2d(a2, conv2, engine::PoolKind::kMax, kPool);
  const Values hidden = activation(dense(n, pool2, w3, b3, kUnits[0]), kRelu);
  const Values logits = dense(n, hidden, w4, b4, kUnits[1]);

  const LinearGradients g4 =
      dense_gradients(n, hidden, w4, kUnits[1], softmax_cross_entropy_gradient(kUnits[1], logits, labels));
  const LinearGradients g3 = dense_gradients(n, pool2, w3, kUnits[0], activation_gradient(hidden, kRelu, g4.input));
  const LinearGradients g2 = conv2d_gradients(p1, pool1, w2, kFilters[1], kConv,
                                              pool2d_gradient(a2, conv2, engine::PoolKind::kMax, kPool, g3.input));
  const LinearGradients g1 = conv2d_gradients(x, images, w1, kFilters[0], kConv,
                                              pool2d_gradient(a1, conv1, engine::PoolKind::kMax, kPool, g2.input));
  LossAndGradient result{softmax_cross_entropy(kUnits[1], logits, labels), {}};
  for (const LinearGradients* gradients : {&g1, &g2, &g3, &g4}) {
    append(result.gradient, gradients->weights);
    append(result.gradient, gradients->bias);
  }
  return result;
}

}  // namespace arbalest::tests
