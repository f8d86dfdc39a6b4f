// Enqueues the mean of the replicas as the model of a run, for the rounds within which no vector is the model.
#pragma once

#include <span>

#include "engine/event.h"
#include "scheduler/replicas/replicas.h"
#include "sma/central_model.h"

namespace arbalest::scheduler {

// Sets target(pool) to the replicas' mean, computed relative to base(pool), once the averaging streams have waited for
// the replicas. Learners wait until it has read them.
template <typename Base, typename Target>
sma::AveragingTicket gather_mean(Replicas& replicas, sma::CentralModel& central, const Base& base,
                                 const Target& target) {
  replicas.wait_for(central.average_replicas(base, target), "wait for the replicas to be read");
  // GPUs may deadlock if some are in an exchange while others are in an all-reduce
  // (engine/cuda/exchange/nccl_exchange.h).
  if (replicas.exchange() != nullptr) replicas.wait_for(central.record(), "wait for the all-reduce");
  return central.ticket();
}

}  // namespace arbalest::scheduler
