// Local response normalization in double precision.
#include <cmath>

#include "tests/support/reference_ops.h"

namespace arbalest::tests {

using engine::Shape;

namespace {

// Calls visit(e, f) for every element e and each element f of the channels around it, including its own.
template <typename Visit>
void for_each_neighbor(const Shape& shape, std::int64_t size, const Visit& visit) {
  const std::int64_t pixels = shape[2] * shape[3];
  for (std::int64_t e = 0; e < shape.elements(); ++e) {
    const std::int64_t channel = e / pixels % shape[1];
    for (std::int64_t j = channel - size / 2; j <= channel + size / 2; ++j) {
      if (j >= 0 && j < shape[1])
        visit(static_cast<std::size_t>(e), static_cast<std::size_t>(e + (j - channel) * pixels));
    }
  }
}

Values scales_of(const Shape& shape, const Values& input, const ResponseNorm& norm) {
  Values scales(input.size(), norm.k);
  for_each_neighbor(shape, norm.size, [&](std::size_t e, std::size_t neighbor) {
    scales[e] += norm.alpha / static_cast<double>(norm.size) * input[neighbor] * input[neighbor];
  });
  return scales;
}

}  // namespace

Values local_response_norm(const Shape& shape, const Values& input, const ResponseNorm& norm) {
  Values output = scales_of(shape, input, norm);
  for (std::size_t e = 0; e < input.size(); ++e) output[e] = input[e] * std::pow(output[e], -norm.beta);
  return output;
}

Values local_response_norm_gradient(const Shape& shape, const Values& input, const ResponseNorm& norm,
                                    const Values& output_gradient) {
  const Values scales = scales_of(shape, input, norm);
  Values gradient(input.size());
  for (std::size_t e = 0; e < input.size(); ++e) gradient[e] = output_gradient[e] * std::pow(scales[e], -norm.beta);
  // Every y_e reads every x around it.
  for_each_neighbor(shape, norm.size, [&](std::size_t e, std::size_t neighbor) {
    gradient[neighbor] += output_gradient[e] * input[e] * -norm.beta * std::pow(scales[e], -norm.beta - 1.0) *
                          norm.alpha / static_cast<double>(norm.size) * 2.0 * input[neighbor];
  });
  return gradient;
}

}  // namespace arbalest::tests
