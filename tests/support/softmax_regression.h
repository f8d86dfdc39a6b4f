// Logistic regression in plain double arithmetic, on the mini-batches of a training rig.
#pragma once

#include <cmath>
#include <cstdint>
#include <vector>

#include "tests/support/read_example.h"
#include "tests/support/reference_sma.h"
#include "tests/support/training_rig.h"

namespace arbalest::tests {

class SoftmaxRegression {
 public:
  explicit SoftmaxRegression(TrainingRig& rig)
      : rig_(rig),
        pixels_(rig.data().description().image().elements()),
        classes_(static_cast<std::size_t>(rig.data().description().classes())) {}

  // Sum of all losses in gradient() so far.
  double loss_sum() const noexcept { return loss_sum_; }

  // Gradient of the mean loss of mini-batch `task`: weights [classes, pixels], then bias [classes].
  ReferenceSma::Gradient gradient() {
    return [this](std::uint64_t task, const std::vector<double>& parameters) { return gradient(task, parameters); };
  }

 private:
  std::vector<double> gradient(std::uint64_t task, const std::vector<double>& parameters) {
    const auto batch = static_cast<std::size_t>(rig_.order().batch_size());
    const std::size_t biases = classes_ * static_cast<std::size_t>(pixels_);
    std::vector<std::int64_t> examples(batch);
    rig_.order().indices(task, examples);
    std::vector<double> result(parameters.size(), 0.0);
    std::vector<float> image(static_cast<std::size_t>(pixels_));
    for (const std::int64_t example : examples) {
      read_image(rig_.data(), example, {}, image.data());
      const auto label = static_cast<std::size_t>(dataflow::class_of(rig_.data(), example));
      std::vector<double> logits(classes_);
      double sum = 0.0;
      for (std::size_t c = 0; c < classes_; ++c) {
        logits[c] = parameters[biases + c];
        for (std::size_t i = 0; i < image.size(); ++i) logits[c] += parameters[c * image.size() + i] * image[i];
        sum += std::exp(logits[c]);
      }
      loss_sum_ += std::log(sum) - logits[label];
      for (std::size_t c = 0; c < classes_; ++c) {
        const double error = (std::exp(logits[c]) / sum - (c == label ? 1.0 : 0.0)) / static_cast<double>(batch);
        for (std::size_t i = 0; i < image.size(); ++i) result[c * image.size() + i] += error * image[i];
        result[biases + c] += error;
      }
    }
    return result;
  }

  TrainingRig& rig_;
  std::int64_t pixels_;
  std::size_t classes_;
  double loss_sum_ = 0.0;
};

inline std::vector<double> flatten(const std::vector<dataflow::NamedTensor>& tensors) {
  std::vector<double> values;
  for (const auto& tensor : tensors) values.insert(values.end(), tensor.values.begin(), tensor.values.end());
  return values;
}

// |a - b| / |b|
inline double relative_distance(const std::vector<double>& a, const std::vector<double>& b) {
  double difference = 0.0;
  double norm = 0.0;
  for (std::size_t i = 0; i < a.size(); ++i) {
    difference += (a[i] - b[i]) * (a[i] - b[i]);
    norm += b[i] * b[i];
  }
  return std::sqrt(difference / norm);
}

}  // namespace arbalest::tests
