#include <cmath>

#include "tests/support/reference_ops.h"

namespace arbalest::tests {

namespace {

std::size_t at(std::int64_t index) { return static_cast<std::size_t>(index); }

// Calls visit(element of the table, element of the output) for all elements that are looked up.
template <typename Visit>
void for_each_looked_up(std::int64_t width, const Labels& ids, const Visit& visit) {
  for (std::size_t n = 0; n < ids.size(); ++n) {
    for (std::int64_t c = 0; c < width; ++c) visit(at(ids[n] * width + c), n * at(width) + at(c));
  }
}

std::size_t count_labeled(const Values& labels) {
  std::size_t labeled = 0;
  for (const double label : labels) labeled += std::isnan(label) ? 0 : 1;
  return labeled;
}

}  // namespace

Values embedding(std::int64_t width, const Values& table, const Labels& ids) {
  Values output(ids.size() * at(width));
  for_each_looked_up(width, ids, [&](std::size_t from, std::size_t to) { output[to] = table[from]; });
  return output;
}

Values embedding_gradient(std::int64_t rows, std::int64_t width, const Labels& ids, const Values& output_gradient) {
  Values gradient(at(rows * width));
  for_each_looked_up(width, ids, [&](std::size_t to, std::size_t from) { gradient[to] += output_gradient[from]; });
  return gradient;
}

Values inner_product(std::int64_t features, const Values& a, const Values& b, double bias) {
  Values output(a.size() / at(features), bias);
  for (std::size_t e = 0; e < a.size(); ++e) output[e / at(features)] += a[e] * b[e];
  return output;
}

LinearGradients inner_product_gradients(std::int64_t features, const Values& a, const Values& b,
                                        const Values& output_gradient) {
  LinearGradients gradients{Values(a.size()), Values(b.size()), Values(1)};
  for (std::size_t e = 0; e < a.size(); ++e) {
    gradients.input[e] = output_gradient[e / at(features)] * b[e];
    gradients.weights[e] = output_gradient[e / at(features)] * a[e];
  }
  for (const double value : output_gradient) gradients.bias[0] += value;
  return gradients;
}

double squared_error(const Values& predictions, const Values& labels) {
  double sum = 0.0;
  for (std::size_t n = 0; n < labels.size(); ++n) {
    if (!std::isnan(labels[n])) sum += (predictions[n] - labels[n]) * (predictions[n] - labels[n]);
  }
  return sum;
}

Values squared_error_gradient(const Values& predictions, const Values& labels) {
  const auto labeled = static_cast<double>(count_labeled(labels));
  Values gradient(labels.size());
  for (std::size_t n = 0; n < labels.size(); ++n) {
    if (!std::isnan(labels[n])) gradient[n] = 2.0 * (predictions[n] - labels[n]) / labeled;
  }
  return gradient;
}

}  // namespace arbalest::tests
