#include "bench/gpu/gpu.h"

#include <cstdlib>

#include <fmt/format.h>

#include "engine/backends/cuda_devices.h"
#include "engine/base/error.h"

namespace arbalest::bench {

namespace {

constexpr int kSkipped = 4;  // as in tests/support/skip.h
constexpr int kUsage = 2;

[[noreturn]] void end(const char* what, const engine::Error& error, int exit_code) {
  fmt::print(stderr, "{}: {}\n", what, error.what());
  std::exit(exit_code);
}

engine::DeviceSpec parse_gpu(const std::string& device) {
  engine::DeviceSpec spec = engine::parse_device(device);
  if (!spec.is_cuda()) engine::fail(engine::ErrorKind::kUsage, "'{}' is no GPU", device);
  return spec;
}

}  // namespace

std::string gpu_or_skip(const std::string& device) {
  engine::DeviceSpec spec;
  try {
    spec = parse_gpu(device);
  } catch (const engine::Error& error) {
    end("error", error, kUsage);
  }
  try {
    return engine::find_cuda_device(spec).name;
  } catch (const engine::Error& error) {
    end("skipped", error, kSkipped);
  }
}

}  // namespace arbalest::bench
