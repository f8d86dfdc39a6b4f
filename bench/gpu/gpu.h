// Checks that the GPU of a benchmark exists.
#pragma once

#include <string>

namespace arbalest::bench {

// Returns the model name of GPU `device` ("cuda:0"): "NVIDIA H100 80GB HBM3". If the machine lacks this GPU, prints the
// reason to stderr and exits with 4, which counts as skipped. A name of no GPU exits with 2.
std::string gpu_or_skip(const std::string& device);

}  // namespace arbalest::bench
