// Counts how a classifier's predictions are spread over the classes.
#pragma once

#include <cstdint>
#include <functional>
#include <optional>
#include <span>
#include <vector>

namespace arbalest::jobs {

// Scores of a class, or their mean over the classes. What is undefined is 0, as with scikit-learn's zero_division=0.
struct ClassScore {
  double precision = 0.0;  // fraction of the predictions of the class that are right; undefined without predictions
  double recall = 0.0;     // fraction of the examples of the class that are predicted right; undefined without examples
  double f1 = 0.0;         // harmonic mean of both; undefined without predictions and examples
};

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
  // Fraction of the examples of a class that are predicted right: its recall, but none without examples.
  std::optional<double> accuracy(std::int64_t label) const;
  ClassScore score(std::int64_t c) const;
  // Means over all classes, also those without examples: each counts the same, or as often as it has examples.
  ClassScore macro_mean() const;
  ClassScore weighted_mean() const;

 private:
  // The mean score of the classes; `weight` gets the number of a class.
  ClassScore mean(const std::function<double(std::int64_t)>& weight) const;

  std::int64_t classes_;
  std::vector<std::int64_t> confusion_;  // [classes, classes]: row: label, column: predicted class
};

}  // namespace arbalest::jobs
