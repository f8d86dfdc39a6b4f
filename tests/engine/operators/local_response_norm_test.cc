#include <algorithm>
#include <cmath>

#include "tests/engine/operator_check.h"
#include "tests/support/catch.h"

namespace arbalest::tests {
namespace {

struct Norm {
  std::int64_t size;
  double alpha;
  double beta;
  double k;
};

// engine/ops/local_response_norm.h
Values normalized(const engine::Shape& shape, const Values& x, const Norm& norm) {
  const std::int64_t pixels = shape[2] * shape[3];
  Values y(x.size());
  for (std::int64_t e = 0; e < shape.elements(); ++e) {
    const std::int64_t channel = e / pixels % shape[1];
    double squares = 0.0;
    for (std::int64_t j = std::max<std::int64_t>(channel - norm.size / 2, 0);
         j <= std::min(channel + norm.size / 2, shape[1] - 1); ++j) {
      const double neighbor = x[static_cast<std::size_t>(e + (j - channel) * pixels)];
      squares += neighbor * neighbor;
    }
    const double scale = norm.k + norm.alpha / static_cast<double>(norm.size) * squares;
    y[static_cast<std::size_t>(e)] = x[static_cast<std::size_t>(e)] * std::pow(scale, -norm.beta);
  }
  return y;
}

OperatorCheck response_norm(const char* name, const engine::Shape& shape, const Norm& norm) {
  return {.name = name,
          .inputs = {shape},
          .spec =
              [=](auto layouts) {
                return engine::LocalResponseNormSpec{layouts[0], norm.size, static_cast<float>(norm.alpha),
                                                     static_cast<float>(norm.beta), static_cast<float>(norm.k)};
              },
          .reference = [=](const auto& inputs, const auto&) { return normalized(shape, inputs[0], norm); },
          .spread = 2.0};
}

}  // namespace

TEST_CASE("local response normalization of two channels by hand") {
  // 3 / (1 + 2/1 * 9), 4 / (1 + 2/1 * 16); then both divided by 1 + 2/3 * 25
  CHECK(normalized({1, 2, 1, 1}, {3, 4}, {1, 2.0, 1.0, 1.0}) == Values{3.0 / 19.0, 4.0 / 33.0});
  const Values both = normalized({1, 2, 1, 1}, {3, 4}, {3, 2.0, 1.0, 1.0});
  CHECK(both[0] == Approx(9.0 / 53.0));
  CHECK(both[1] == Approx(12.0 / 53.0));
}

TEST_CASE("local response normalization") {
  check_operators({response_norm("AlexNet's, few channels", {3, 20, 7, 6}, {5, 1e-4, 0.75, 1.0}),
                   response_norm("strong, 96 channels", {2, 96, 9, 13}, {5, 0.5, 0.75, 2.0}),
                   response_norm("size three, another power", {2, 17, 3, 3}, {3, 1.0, 0.5, 0.5}),
                   response_norm("more neighbors than channels", {2, 3, 5, 5}, {7, 0.3, 0.6, 1.0}),
                   response_norm("of each channel alone", {4, 16, 2, 2}, {1, 0.7, 1.0, 1.0}),
                   response_norm("one channel", {3, 1, 5, 5}, {5, 0.2, 0.75, 1.0}),
                   response_norm("one pixel", {5, 33, 1, 1}, {5, 0.2, 0.75, 1.0}),
                   response_norm("a single number", {1, 1, 1, 1}, {5, 0.2, 0.75, 1.0})});
}

}  // namespace arbalest::tests
