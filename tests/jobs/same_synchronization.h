// Compares the synchronization of two jobs, field by field.
#pragma once

#include "options/job_options.h"
#include "tests/support/catch.h"

namespace arbalest::jobs {

inline void check_same_scheme(const sma::Options& a, const sma::Options& b) {
  CHECK(a.scheme == b.scheme);
  CHECK(a.pull == b.pull);
  CHECK(a.pull_of_all == b.pull_of_all);
  CHECK(a.outer_rate == b.outer_rate);
  CHECK(a.momentum == b.momentum);
  CHECK(a.nesterov == b.nesterov);
  CHECK(a.period == b.period);
  CHECK(a.rate_coefficient == b.rate_coefficient);
  CHECK(a.local_state == b.local_state);
  CHECK(a.bucket_bytes == b.bucket_bytes);
  CHECK(a.staleness == b.staleness);
  CHECK(a.scale_by_staleness == b.scale_by_staleness);
}

inline void check_same_synchronization(const JobOptions& a, const JobOptions& b) {
  check_same_scheme(a.synchronization, b.synchronization);
  CHECK(a.synchronization_path == b.synchronization_path);
  REQUIRE(a.switches.size() == b.switches.size());
  for (std::size_t i = 0; i < a.switches.size(); ++i) {
    INFO("switch " << i);
    check_same_scheme(a.switches[i].to, b.switches[i].to);
    CHECK(a.switches[i].at_epoch == b.switches[i].at_epoch);
    CHECK(a.switches[i].learners_per_device == b.switches[i].learners_per_device);
    CHECK(a.switches[i].with_learners == b.switches[i].with_learners);
    CHECK(a.switches[i].path == b.switches[i].path);
  }
}

}  // namespace arbalest::jobs
