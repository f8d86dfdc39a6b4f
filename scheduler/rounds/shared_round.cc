#include "scheduler/rounds/shared_round.h"

#include "engine/base/error.h"

namespace arbalest::scheduler {

SharedRound::SharedRound(const sma::Options& options, const RoundContext& context) : Round(options, context) {
  ARBALEST_CHECK(replicas().pools().size() == 1 && !central().has_copies());
  shared_.values = central().present(0);
}

learners::UpdateSources SharedRound::sources(std::size_t /*pool*/) { return {.shared = &shared_}; }

IterationEnd SharedRound::enqueue(dataflow::BatchRing& ring, Progress& /*progress*/) {
  enqueue_steps(ring, options().steps_per_iteration(), clock().step());
  return {};
}

// Work that is enqueued next on the averaging stream may read the shared weights.
std::optional<sma::AveragingTicket> SharedRound::gather() {
  central().wait_for(replicas().record(), "wait for the learners' steps");
  return std::nullopt;
}

void SharedRound::resume_after(std::span<const engine::Event> read) {
  replicas().wait_for(read, "wait for the moving average");
}

}  // namespace arbalest::scheduler
