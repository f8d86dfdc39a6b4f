#include "scheduler/rounds/make_round.h"

#include "engine/base/error.h"
#include "scheduler/rounds/assigned_round.h"
#include "scheduler/rounds/independent_round.h"
#include "scheduler/rounds/pulled_round.h"
#include "scheduler/rounds/reduced_round.h"
#include "scheduler/rounds/server_round.h"
#include "scheduler/rounds/sharded_round.h"
#include "scheduler/rounds/shared_round.h"

namespace arbalest::scheduler {

std::unique_ptr<Round> make_round(const sma::Options& options, const RoundContext& context) {
  const sma::SynchronizationMode mode = options.mode(context.replicas.share().all);
  ARBALEST_CHECK(context.synchronizer.has_central() || mode == sma::SynchronizationMode::kNone);
  switch (mode) {
    case sma::SynchronizationMode::kNone: return std::make_unique<IndependentRound>(options, context);
    case sma::SynchronizationMode::kPull: return std::make_unique<PulledRound>(options, context);
    case sma::SynchronizationMode::kAssign: return std::make_unique<AssignedRound>(options, context);
    case sma::SynchronizationMode::kGradient: return std::make_unique<ReducedRound>(options, context);
    case sma::SynchronizationMode::kServer:
      // In one process, too, a ShardedRound works, but its messages and copies take a quarter more processor time
      // (bench/results/2026-11-29-structure.md).
      if (context.replicas.world().size() > 1) return std::make_unique<ShardedRound>(options, context);
      return std::make_unique<ServerRound>(options, context);
    case sma::SynchronizationMode::kShared: return std::make_unique<SharedRound>(options, context);
  }
  ARBALEST_CHECK(false);
}

}  // namespace arbalest::scheduler
