// What changes from one replay of a recorded step to the next, and what a step reports. Both cross between host and
// device as plain bytes.
#pragma once

#include <cstdint>

namespace arbalest::engine {

// The host writes a block, and the mini-batch's indices behind it, into a ring as deep as the scheduler's run-ahead;
// the learner's stream copies them to the recording's fixed address before the replay. The host never rewrites a block
// that an enqueued replay may still read.
struct StepParameters {
  std::uint64_t task = 0;       // number of the mini-batch over the whole run, from 0
  std::uint64_t seed = 0;       // the job's seed; randomness is keyed on (seed, task, layer, element)
  float learning_rate = 0.0F;   // gamma, per learner
  float pull = 0.0F;            // a: how far the update moves the weights towards a reference vector; 0: not at all
  std::uint32_t reference = 0;  // which of WeightUpdate::references that is
  // moment_corrections() for the number of this step of the learner, counted from the last restart; the learner sets
  // it.
  float moment_corrections[2] = {1.0F, 1.0F};
  std::uint32_t reserved = 0;
};

struct StepResult {
  float loss_sum = 0.0F;        // over the labeled examples of the mini-batch
  float correct = 0.0F;         // labeled examples whose largest logit is their label's (exact below 2^24)
  float correct_top5 = 0.0F;    // and those where it is among the five largest (ops/accuracy.h)
  std::int32_t non_finite = 0;  // elements that the update refused, or left non-finite (ops/weight_update.h)
  float gradient_scale = 0.0F;  // of clipping (ops/gradient_clip.h); 0 where there is none
};

}  // namespace arbalest::engine
