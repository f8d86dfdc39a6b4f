// Predicts the time of a step on a GPU, assuming that one of three limits determines it. The predictions were made
// before the first measurement, so that the measurement can refute them.
#pragma once

#include <cstdint>

#include "engine/base/precision.h"
#include "tests/prediction/step_costs.h"

namespace arbalest::tests::prediction {

// H100 SXM, from NVIDIA's data sheet, for dense matrix products.
struct Gpu {
  double bytes_per_second = 3.35e12;
  double float32_operations_per_second = 67e12;  // without tensor cores
  double tensor_float32_operations_per_second = 495e12;
  double bfloat16_operations_per_second = 989e12;
  double least_node_seconds = 2.5e-6;  // from the start of a node to the start of a dependent node
  double most_node_seconds = 3e-6;
};

enum class Limit { kNodes, kBytes, kOperations };

const char* to_string(Limit limit);

// Times in which each of `learners` does one step.
struct Prediction {
  double least_node_seconds = 0.0;  // does not depend on the number of learners, whose graphs run concurrently
  double most_node_seconds = 0.0;
  double byte_seconds = 0.0;  // including averaging
  double operation_seconds = 0.0;
  double least_seconds = 0.0;
  double most_seconds = 0.0;
  Limit limit = Limit::kNodes;  // the limit that determines most_seconds
};

Prediction predict(const Gpu& gpu, const StepCosts& costs, std::int64_t nodes, engine::Precision precision,
                   int learners);

}  // namespace arbalest::tests::prediction
