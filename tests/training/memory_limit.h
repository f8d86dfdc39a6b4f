// Jobs that need much memory.
#pragma once

#include <cstdint>
#include <string>

#include "tests/support/address_space_limit.h"
#include "tests/training/whole_run.h"

namespace arbalest::tests {

// A job with a dense layer of `units` units; it has 784 times as many weights. It saves no checkpoints, whose copy of
// the state would take memory for a moment.
inline jobs::JobOptions wide_job(std::int64_t units, const std::string& learners) {
  return parse("name: 'wide' model { layers { name: 'd' input: 'image' dense { units: " + std::to_string(units) +
               " } } layers { name: 'logits' input: 'd' dense { units: 10 } }\n"
               "layers { name: 'loss' input: ['logits', 'label'] softmax_cross_entropy {} } }\n"
               "data { digits {} } training { batch_size: 16 max_epochs: 1 } learning_rate { base: 0.01 }\n"
               "checkpoint { keep_last: 0 } devices: 'cpu' learners { per_device { " +
               learners + " } }");
}

inline jobs::JobOptions wide_job(std::int64_t units, int learners) {
  return wide_job(units, "fixed: " + std::to_string(learners));
}

}  // namespace arbalest::tests
