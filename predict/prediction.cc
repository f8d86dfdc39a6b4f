#include "predict/prediction.h"

#include <algorithm>
#include <cmath>
#include <numeric>

namespace arbalest::jobs {

namespace {

constexpr const char* kNotFinite = "the model's output is not a finite number";

}  // namespace

Prediction classify(std::span<const float> logits, int top) {
  Prediction prediction;
  if (!std::ranges::all_of(logits, [](float logit) { return std::isfinite(logit); })) {
    prediction.error = kNotFinite;
    return prediction;
  }
  const double largest = std::ranges::max(logits);
  double sum = 0.0;
  for (const float logit : logits) sum += std::exp(logit - largest);
  std::vector<std::int64_t> order(logits.size());
  std::iota(order.begin(), order.end(), 0);
  const auto count = std::min(order.size(), static_cast<std::size_t>(top));
  const auto logit_of = [&](std::int64_t output) { return logits[static_cast<std::size_t>(output)]; };
  std::ranges::partial_sort(
      order, order.begin() + static_cast<std::ptrdiff_t>(count),
      [&](std::int64_t a, std::int64_t b) { return logit_of(a) != logit_of(b) ? logit_of(a) > logit_of(b) : a < b; });
  for (std::size_t k = 0; k < count; ++k) {
    prediction.top.push_back({order[k], static_cast<float>(std::exp(logit_of(order[k]) - largest) / sum)});
  }
  return prediction;
}

Prediction score(float output) {
  Prediction prediction;
  if (std::isfinite(output)) {
    prediction.score = output;
  } else {
    prediction.error = kNotFinite;
  }
  return prediction;
}

}  // namespace arbalest::jobs
