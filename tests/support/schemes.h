// Every synchronization scheme, with rounds short enough for small trainings.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "sma/options.h"

namespace arbalest::tests {

// Twelve steps end in the middle of a round, for those schemes that allow a run to end there.
inline std::vector<sma::Options> short_schemes() {
  const auto make = [](sma::Scheme scheme, int period) {
    sma::Options options = sma::defaults_of(scheme);
    options.period = period;
    return options;
  };
  std::vector<sma::Options> schemes;
  schemes.push_back(make(sma::Scheme::kSma, 2));
  schemes.push_back(make(sma::Scheme::kEaSgd, 3));
  schemes.push_back(make(sma::Scheme::kSSgd, 1));
  schemes.back().bucket_bytes = 128;  // so that a small gradient has several parts
  schemes.push_back(make(sma::Scheme::kLocalSgd, 5));
  schemes.push_back(make(sma::Scheme::kLocalSgd, 5));
  schemes.back().local_state = sma::LocalState::kAverage;
  schemes.push_back(make(sma::Scheme::kBmuf, 5));
  schemes.back().nesterov = true;
  schemes.push_back(make(sma::Scheme::kSlowMo, 5));
  schemes.back().momentum = 0.5F;
  schemes.back().local_state = sma::LocalState::kZero;
  schemes.push_back(make(sma::Scheme::kDiloco, 5));
  schemes.push_back(make(sma::Scheme::kLookahead, 5));
  schemes.push_back(make(sma::Scheme::kSwap, 1));
  return schemes;
}

// `staleness`: none if there is no bound.
inline sma::Options async_sgd(std::optional<int> staleness, int push_every = 1) {
  sma::Options options = sma::defaults_of(sma::Scheme::kAsyncSgd);
  options.staleness = staleness;
  options.period = push_every;
  return options;
}

inline std::string name_of(const sma::Options& options) {
  return std::string(sma::name_of(options.scheme)) +
         (options.local_state == sma::LocalState::kAverage ? ", state averaged" : "");
}

}  // namespace arbalest::tests
