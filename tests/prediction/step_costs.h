// Lower bounds for the cost of one learner's step on a GPU, counted from the prepared plan and the captured step.
#pragma once

#include <cstdint>
#include <string>

#include "dataflow/graph.h"
#include "engine/precision.h"

namespace arbalest::tests::prediction {

struct StepCosts {
  double operations = 0.0;      // multiplications and additions of convolutions and dense layers
  double bytes = 0.0;           // that operators and the update read and write
  std::int64_t parameters = 0;  // elements of the flat vector
};

struct StepQuestion {
  std::string model;  // as in a job file, "lenet {}"
  dataflow::InputDescription input;
  std::int64_t examples = 0;  // of a mini-batch
  engine::Precision precision = engine::Precision::kFloat32;
};

// Nodes that one learner enqueues for a step on the stand-in: copies, kernels and library calls. They do not depend on
// the mini-batch, so a small one is captured, with the built-in digits as data.
std::int64_t count_nodes(const std::string& model, engine::Precision precision);

// Each tensor counts once in each of these:
//   forward: every operator reads its inputs and parameters and writes its output
//   backward: it reads its inputs, parameters and the output's gradient, and writes the gradients of both
//   update: reads weights, momentum, gradient and central model, writes weights, momentum and their rounded copy
StepCosts count_work(const StepQuestion& question);

// One averaging of `learners` replicas on one device, of so many float32 each: reads every replica, the central model
// and the one before it twice in all, and writes the new one (bench/README.md, averaging_bench).
double averaging_bytes(std::int64_t elements, int learners);

}  // namespace arbalest::tests::prediction
