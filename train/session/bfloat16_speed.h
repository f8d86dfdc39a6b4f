// How fast this machine's CPU trains in BF16, measured on small models.
#pragma once

#include <string>
#include <vector>

namespace arbalest::jobs {

struct BFloat16Speed {
  std::string model;
  double ratio = 0.0;  // seconds of a step in FP32 / seconds of one in BF16
};

// Times a few steps of two models on all cores, with zeros for data, in a fraction of a second. Empty if the CPU has no
// BF16, or if memory is short.
std::vector<BFloat16Speed> measure_bfloat16_speed();

}  // namespace arbalest::jobs
