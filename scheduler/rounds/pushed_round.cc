#include "scheduler/rounds/pushed_round.h"

namespace arbalest::scheduler {

PushedRound::PushedRound(const sma::Options& options, const RoundContext& context) : Round(options, context) {
  const engine::ElementRange shard = synchronizer().shards().of(replicas().world().rank());
  server().restart(central().present(0) + shard.begin, options.period);
}

void PushedRound::take_over_state() {
  const std::int64_t begin = synchronizer().shards().trainable_of(replicas().world().rank()).begin;
  const learners::Learner& first = replicas()[0];
  const engine::Event ready = first.stream().record();
  for (std::size_t slot = 0; slot < first.state().size(); ++slot) {
    server().set_state(slot, first.state()[slot].values + begin, ready);
  }
  server().continue_from(first.steps());
}

}  // namespace arbalest::scheduler
