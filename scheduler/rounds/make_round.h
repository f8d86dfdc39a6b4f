// Chooses the round of a scheme.
#pragma once

#include <memory>

#include "scheduler/rounds/round.h"

namespace arbalest::scheduler {

// Returns the round by which `options` couples the replicas that the context has now. The synchronizer must know them
// (sma::Synchronizer::set_replicas).
std::unique_ptr<Round> make_round(const sma::Options& options, const RoundContext& context);

}  // namespace arbalest::scheduler
