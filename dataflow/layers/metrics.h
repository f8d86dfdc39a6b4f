// Metrics of a model: the numbers by which training and evaluation are reported. A layer names its metrics
// (Layer::metrics), Graph::metrics() lists those of the model, and each step gives one sum for each of them
// (engine::StepResult). Reports iterate over the list.
#pragma once

#include <array>
#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "engine/passes/step_parameters.h"

namespace arbalest::dataflow {

enum class MetricForm {
  kMean,       // sum / examples
  kRootOfMean  // sqrt(sum / examples)
};

enum class MetricUnit {
  kFraction,  // in [0, 1]; people read it in percent
  kNumber
};

struct Metric {
  std::string name;   // in files: "top5_accuracy"
  std::string title;  // for people: "top-5 accuracy"
  MetricForm form = MetricForm::kMean;
  MetricUnit unit = MetricUnit::kNumber;
  int sum = 0;              // its place in StepResult::sums; Layer::metrics() counts from the layer's own first sum
  bool is_score = false;    // whether models are judged by it: exactly one metric of a model
  bool is_brief = true;     // whether the terminal shows it, too
  bool is_trivial = false;  // the same number for every model, so that reports have no value
  bool in_training = true;  // false: training sums something else in its place, so its reports have no value
};

using Metrics = std::vector<Metric>;

// The metric by which a model is judged; a smaller value is better if it is no fraction.
const Metric& score_of(const Metrics& metrics);

// The sums of steps, by the numbers of Metric::sum. It holds no heap memory, and crosses between processes as bytes.
struct MetricSums {
  std::array<double, engine::kMaxSums> values{};

  double loss() const noexcept { return values[engine::kLossSum]; }
  void add(const engine::StepResult& step) noexcept {
    for (std::size_t i = 0; i < values.size(); ++i) values[i] += static_cast<double>(step.sums[i]);
  }
  void add(const MetricSums& later) noexcept {
    for (std::size_t i = 0; i < values.size(); ++i) values[i] += later.values[i];
  }
};

// The metric's value over `examples` examples; 0 without examples, and none if the metric is trivial.
std::optional<double> value_of(const Metric& metric, const MetricSums& sums, std::int64_t examples);

}  // namespace arbalest::dataflow
