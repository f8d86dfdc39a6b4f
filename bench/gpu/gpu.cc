#include "bench/gpu/gpu.h"

#include <cstdlib>

#include <fmt/format.h>

#include "engine/cuda_devices.h"
#include "engine/error.h"

namespace arbalest::bench {

namespace {

constexpr int kSkipped = 4;  // as in tests/support/skip.h
constexpr int kUsage = 2;

}  // namespace

std::string gpu_or_skip(const std::string& device) {
  try {
    const engine::DeviceSpec spec = engine::parse_device(device);
    if (!spec.is_cuda()) engine::fail(engine::ErrorKind::kUsage, "'{}' is no GPU", device);
    try {
      return engine::find_cuda_device(spec).name;
    } catch (const engine::Error& error) {
      fmt::print(stderr, "skipped: {}\n", error.what());
      std::exit(kSkipped);
    }
  } catch (const engine::Error& error) {
    fmt::print(stderr, "error: {}\n", error.what());
    std::exit(kUsage);
  }
}

}  // namespace arbalest::bench
