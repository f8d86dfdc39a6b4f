// The advice to users whose training diverges, by scheme. The messages of a run that has diverged take theirs from
// here.
//
// Learners that do not wait for each other act like a momentum of about 1 - 1/k, for k learners (Mitliagkas et al.,
// "Asynchrony begets momentum", 2016). The optimizer's momentum comes on top of that.
#pragma once

#include <string>

#include "sma/options.h"

namespace arbalest::sma {

// Names what makes the steps of a scheme smaller, as "lower learning_rate.base". `learners`: of all processes;
// `momentum`: the optimizer's.
std::string divergence_remedy(const Options& options, int learners, float momentum);

// Names what makes the steps of hogwild on single rows or ratings smaller. It has no momentum.
std::string hogwild_rows_remedy(int learners);

// Names what makes the steps of delayed block proximal gradient smaller. It has no learning rate.
std::string delayed_proximal_remedy(int max_delay);

}  // namespace arbalest::sma
