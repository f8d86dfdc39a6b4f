// The GPU that a benchmark runs on.
#pragma once

#include <string>

namespace arbalest::bench {

// Its name ("NVIDIA H100 80GB HBM3"). Where there is no such GPU, ends the program with 4, which means skipped, after
// saying why.
std::string gpu_or_skip(const std::string& device);

}  // namespace arbalest::bench
