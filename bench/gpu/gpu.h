// The GPU that a benchmark runs on.
#pragma once

#include <string>

namespace arbalest::bench {

// Its name ("NVIDIA H100 80GB HBM3"). If there is no such GPU, prints the reason and ends the program with 4 (skipped).
std::string gpu_or_skip(const std::string& device);

}  // namespace arbalest::bench
