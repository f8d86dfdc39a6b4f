// How long a step takes on a GPU if nothing but one of three limits holds it up. Written before anything was measured,
// so that the first measurement can refute it.
#pragma once

#include <cstdint>

#include "engine/precision.h"
#include "tests/prediction/step_costs.h"

namespace arbalest::tests::prediction {

// H100 SXM, NVIDIA's data sheet; dense products.
struct Gpu {
  double bytes_per_second = 3.35e12;
  double float32_operations_per_second = 67e12;  // without tensor cores
  double tensor_float32_operations_per_second = 495e12;
  double bfloat16_operations_per_second = 989e12;
  double least_node_seconds = 2.5e-6;  // from the start of a node to the start of the one that depends on it
  double most_node_seconds = 3e-6;
};

enum class Limit { kNodes, kBytes, kOperations };

const char* to_string(Limit limit);

// In which every one of `learners` does one step.
struct Prediction {
  double least_node_seconds = 0.0;  // the learners' graphs run side by side, so that their number does not count
  double most_node_seconds = 0.0;
  double byte_seconds = 0.0;  // averaging included
  double operation_seconds = 0.0;
  double least_seconds = 0.0;
  double most_seconds = 0.0;
  Limit limit = Limit::kNodes;  // of most_seconds
};

Prediction predict(const Gpu& gpu, const StepCosts& costs, std::int64_t nodes, engine::Precision precision,
                   int learners);

}  // namespace arbalest::tests::prediction
