#include "scheduler/rounds/independent_round.h"

namespace arbalest::scheduler {

StrideEnd IndependentRound::enqueue(dataflow::BatchRing& ring, Progress& /*progress*/) {
  enqueue_steps(ring, options().steps_per_stride(), clock().step());
  return {};
}

// The learner's own stream measures, so nobody waits.
bool IndependentRound::measure(sma::GradientSpread& spread) {
  engine::Stream* stream = &replicas()[0].stream();
  return spread.enqueue({&stream, 1});
}

}  // namespace arbalest::scheduler
