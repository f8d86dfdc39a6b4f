// Lower bounds for the costs of one learner's step on a GPU, counted from the prepared plan and the captured step.
#pragma once

#include <cstdint>
#include <string>

#include "dataflow/graph.h"
#include "engine/base/precision.h"

namespace arbalest::tests::prediction {

struct StepCosts {
  double operations = 0.0;      // multiplications and additions of convolutions and dense layers
  double bytes = 0.0;           // bytes that operators and the update read and write
  std::int64_t parameters = 0;  // elements of the flat vector
};

struct StepQuestion {
  std::string model;  // as in a job file, "lenet {}"
  dataflow::InputDescription input;
  std::int64_t examples = 0;  // per mini-batch
  engine::Precision precision = engine::Precision::kFloat32;
};

// Counts the nodes that one learner enqueues for a step on the stand-in: copies, kernels and library calls. The number
// does not depend on the batch size from 3 on, so a small mini-batch of the built-in digits is captured.
std::int64_t count_nodes(const std::string& model, engine::Precision precision);

// Counts operations and bytes. Each tensor counts once in each of these:
//   forward: every operator reads its inputs and parameters and writes its output
//   backward: every operator reads its inputs, parameters and output gradient, and writes the gradients of inputs and
//             parameters
//   update: reads weights, momentum, gradient and central model, writes weights, momentum and a rounded copy of weights
StepCosts count_work(const StepQuestion& question);

// Returns the bytes of averaging `learners` replicas of `elements` float32 on one device. Averaging reads every replica
// and two central models, the current and the previous one, and writes the new one (bench/README.md, averaging_bench).
double averaging_bytes(std::int64_t elements, int learners);

}  // namespace arbalest::tests::prediction
