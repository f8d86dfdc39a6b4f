#include "bench/gpu/gpu.h"

#include <cstdlib>

#include <fmt/format.h>

#include "engine/cuda_devices.h"
#include "engine/error.h"

namespace arbalest::bench {

namespace {

constexpr int kSkipped = 4;  // as in tests/support/skip.h

}  // namespace

std::string gpu_or_skip(const std::string& device) {
  try {
    return engine::find_cuda_device(engine::parse_device(device)).name;
  } catch (const engine::Error& error) {
    fmt::print(stderr, "skipped: {}\n", error.what());
    std::exit(kSkipped);
  }
}

}  // namespace arbalest::bench
