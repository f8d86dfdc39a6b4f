// Functions that read what an evaluation of a classifier has counted.
#pragma once

#include "scheduler/scheduler.h"

namespace arbalest::tests {

// The share of examples whose label is among the `top` largest logits, 1 or 5. These are the sums of a classifier's own
// accuracy layer.
inline double accuracy_of(const scheduler::Evaluation& evaluation, int top = 1) {
  return evaluation.sums.values.at(top == 1 ? 1 : 2) / static_cast<double>(evaluation.examples);
}

}  // namespace arbalest::tests
