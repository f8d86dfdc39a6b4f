// Counts how a classifier's predictions are spread over the classes.
#pragma once

#include <cstdint>
#include <optional>
#include <span>
#include <vector>

namespace arbalest::jobs {

class ClassScores {
 public:
  explicit ClassScores(std::int64_t classes)
      : classes_(classes), confusion_(static_cast<std::size_t>(classes * classes)) {}

  // Counts the examples of one mini-batch. The predicted class is the first of the largest logits; NaN is never the
  // largest. logits: [labels.size(), classes]; rows whose label is engine::kNoLabel are left out.
  void add(std::span<const float> logits, std::span<const std::int32_t> labels);

  std::int64_t classes() const noexcept { return classes_; }
  // Number of examples of class `label` for which class `predicted` was predicted: an entry of the confusion matrix.
  std::int64_t count(std::int64_t label, std::int64_t predicted) const {
    return confusion_[static_cast<std::size_t>(label * classes_ + predicted)];
  }
  std::int64_t examples(std::int64_t label) const;         // with this label
  std::int64_t predictions(std::int64_t predicted) const;  // of this class
  // Fraction of the examples of a class that are predicted right, also called recall; none without examples.
  std::optional<double> accuracy(std::int64_t label) const;
  // Fraction of the predictions of a class that are right; none without predictions.
  std::optional<double> precision(std::int64_t predicted) const;

 private:
  std::int64_t classes_;
  std::vector<std::int64_t> confusion_;  // [classes, classes]: row: label, column: predicted class
};

}  // namespace arbalest::jobs
