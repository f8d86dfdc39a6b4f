#include "train/scores/class_scores.h"

#include <cmath>

#include "engine/base/error.h"
#include "engine/ops/softmax_cross_entropy.h"

namespace arbalest::jobs {

namespace {

double ratio_or_zero(std::int64_t part, std::int64_t whole) {
  return whole == 0 ? 0.0 : static_cast<double>(part) / static_cast<double>(whole);
}

// The first of the largest logits, leaving out NaN.
std::int64_t predicted_class(std::span<const float> logits) {
  std::size_t best = 0;
  for (std::size_t c = 1; c < logits.size(); ++c) {
    if (logits[c] > logits[best] || std::isnan(logits[best])) best = c;
  }
  return static_cast<std::int64_t>(best);
}

}  // namespace

void ClassScores::add(std::span<const float> logits, std::span<const std::int32_t> labels) {
  const auto classes = static_cast<std::size_t>(classes_);
  ARBALEST_CHECK(logits.size() == labels.size() * classes);
  for (std::size_t row = 0; row < labels.size(); ++row) {
    if (labels[row] == engine::kNoLabel) continue;
    const std::int64_t predicted = predicted_class(logits.subspan(row * classes, classes));
    ++confusion_[static_cast<std::size_t>(labels[row] * classes_ + predicted)];
  }
}

std::int64_t ClassScores::examples(std::int64_t label) const {
  std::int64_t sum = 0;
  for (std::int64_t c = 0; c < classes_; ++c) sum += count(label, c);
  return sum;
}

std::int64_t ClassScores::predictions(std::int64_t predicted) const {
  std::int64_t sum = 0;
  for (std::int64_t c = 0; c < classes_; ++c) sum += count(c, predicted);
  return sum;
}

std::optional<double> ClassScores::accuracy(std::int64_t label) const {
  return examples(label) == 0 ? std::nullopt : std::optional(score(label).recall);
}

ClassScore ClassScores::score(std::int64_t c) const {
  const std::int64_t right = count(c, c);
  return {.precision = ratio_or_zero(right, predictions(c)),
          .recall = ratio_or_zero(right, examples(c)),
          .f1 = ratio_or_zero(2 * right, predictions(c) + examples(c))};
}

ClassScore ClassScores::mean(const std::function<double(std::int64_t)>& weight) const {
  ClassScore sum;
  double weights = 0.0;
  for (std::int64_t c = 0; c < classes_; ++c) {
    const ClassScore of = score(c);
    sum.precision += weight(c) * of.precision;
    sum.recall += weight(c) * of.recall;
    sum.f1 += weight(c) * of.f1;
    weights += weight(c);
  }
  if (weights == 0.0) return {};
  return {.precision = sum.precision / weights, .recall = sum.recall / weights, .f1 = sum.f1 / weights};
}

ClassScore ClassScores::macro_mean() const {
  return mean([](std::int64_t) { return 1.0; });
}

ClassScore ClassScores::weighted_mean() const {
  return mean([this](std::int64_t c) { return static_cast<double>(examples(c)); });
}

}  // namespace arbalest::jobs
