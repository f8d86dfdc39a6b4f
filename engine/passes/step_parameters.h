// The parameters that change from one replay of a recorded step to the next, and the results of a step. Both cross
// between host and device as plain bytes.
#pragma once

#include <cstdint>

namespace arbalest::engine {

// The host writes a block, followed by the mini-batch's indices, into a ring as deep as the scheduler's run-ahead. The
// learner's stream copies them to the recording's fixed address before the replay. The host never rewrites a block that
// an enqueued replay may still read.
struct StepParameters {
  std::uint64_t task = 0;       // number of the mini-batch over the whole run, from 0
  std::uint64_t seed = 0;       // the job's seed; randomness is keyed on (seed, task, layer, element)
  float learning_rate = 0.0F;   // gamma, per learner
  float pull = 0.0F;            // a: factor of the pull towards a reference vector; 0: no pull
  std::uint32_t reference = 0;  // index of that vector in WeightUpdate::references
  // moment_corrections() for this step of the learner, counted from the last restart. The learner sets them.
  float moment_corrections[2] = {1.0F, 1.0F};
  std::uint32_t reserved = 0;
};

// The most sums of a step: the loss and those of the model's metrics.
inline constexpr int kMaxSums = 8;
inline constexpr int kLossSum = 0;  // the number of the loss among them

struct StepResult {
  // Sums over the labeled examples of the mini-batch. [kLossSum] is the loss; the others are written by the metric
  // layer, and dataflow/layers/metrics.h names them all. The rest is 0.
  float sums[kMaxSums] = {};
  std::int32_t non_finite = 0;  // elements that the update refused, or that it left non-finite (ops/weight_update.h)
  float gradient_scale = 0.0F;  // clipping factor (ops/gradient_clip.h); 0 without clipping
};

}  // namespace arbalest::engine
