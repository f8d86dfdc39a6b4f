// Options of delayed block proximal gradient (proximal_solver.h).
#pragma once

#include <cstdint>

namespace arbalest::scheduler {

struct ProximalOptions {
  int blocks = 1;     // at most the coordinates
  int max_delay = 0;  // below `blocks`
  double l1 = 0.0;    // at least 0; the bias is not penalized
  double step = 1.0;  // eta, in (0, 1]
  bool bias = true;   // whether there is one
  std::uint64_t seed = 1;
  double first_bound = 1.0;  // delta of a coordinate at the start, and its largest value
  double largest_bound = 5.0;
};

}  // namespace arbalest::scheduler
