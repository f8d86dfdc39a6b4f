#include "scheduler/rounds/independent_round.h"

namespace arbalest::scheduler {

IterationEnd IndependentRound::enqueue(dataflow::BatchRing& ring, Progress& /*progress*/) {
  enqueue_steps(ring, options().steps_per_iteration(), clock().step());
  return {};
}

// The learner's own stream measures, so nobody waits.
bool IndependentRound::measure(sma::GradientVariance& variance) {
  engine::Stream* stream = &replicas()[0].stream();
  return variance.enqueue({&stream, 1});
}

}  // namespace arbalest::scheduler
