#include <cmath>

#include "engine/base/alignment.h"
#include "tests/engine/operator_check.h"
#include "tests/support/catch.h"

namespace arbalest::tests {
namespace {

// engine/ops/layer_norm.h
Values normalized(std::int64_t examples, const Values& x, const std::vector<Values>& parameters, double epsilon) {
  const std::size_t features = x.size() / static_cast<std::size_t>(examples);
  Values y(x.size());
  for (std::size_t first = 0; first < x.size(); first += features) {
    double sum = 0.0;
    for (std::size_t f = first; f < first + features; ++f) sum += x[f];
    const double mean = sum / static_cast<double>(features);
    double squares = 0.0;
    for (std::size_t f = first; f < first + features; ++f) squares += (x[f] - mean) * (x[f] - mean);
    const double deviation = std::sqrt(squares / static_cast<double>(features) + epsilon);
    for (std::size_t f = 0; f < features; ++f) {
      const double z = (x[first + f] - mean) / deviation;
      y[first + f] = parameters.empty() ? z : parameters[0][f] * z + parameters[1][f];
    }
  }
  return y;
}

OperatorCheck layer_norm(const char* name, const engine::Shape& shape, float epsilon, bool affine = true) {
  OperatorCheck check{.name = name, .inputs = {shape}};
  if (affine) check.parameters.assign(2, engine::example_shape(shape));
  check.spec = [=](auto layouts) { return engine::LayerNormSpec{layouts[0], epsilon, affine}; };
  check.reference = [=](const auto& inputs, const auto& parameters) {
    return normalized(shape[0], inputs[0], parameters, static_cast<double>(epsilon));
  };
  check.most_saved_bytes = engine::aligned(static_cast<std::size_t>(shape[0]) * 2 * sizeof(float));
  return check;
}

OperatorCheck far_from_zero(OperatorCheck check) {
  check.middle = 1e4;
  check.spread = std::sqrt(3.0);  // standard deviation 1
  return check;
}

}  // namespace

TEST_CASE("layer normalization") {
  check_operators({layer_norm("features", {5, 37}, 1e-5F), layer_norm("images", {3, 20, 5, 4}, 1e-5F),
                   layer_norm("without parameters", {4, 3, 5, 5}, 0.1F, false),
                   layer_norm("more work than one thread takes", {9, 2000}, 0.01F),
                   layer_norm("so many examples that several blocks add", {256, 33}, 1e-5F),
                   layer_norm("one number, whose variance is 0", {3, 1}, 0.5F),
                   far_from_zero(layer_norm("mean 10,000 and standard deviation 1", {3, 500}, 1e-5F))});
}

}  // namespace arbalest::tests
