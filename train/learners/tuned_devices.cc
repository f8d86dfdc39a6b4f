#include "train/learners/tuned_devices.h"

#include <algorithm>

#include <fmt/format.h>

#include "engine/backends/cuda_devices.h"
#include "engine/base/error.h"
#include "engine/host/topology.h"
#include "messages/text.h"
#include "options/readers/learners_reader.h"

namespace arbalest::jobs {

using autotuner::Bounds;
using autotuner::Configuration;

namespace {

std::string model_of(const engine::DeviceSpec& device) {
  if (!device.is_cuda()) return engine::host::processor_name();
  const engine::CudaDeviceInfo gpu = engine::find_cuda_device(device);
  return fmt::format("{}, {} multiprocessors", gpu.name, gpu.multiprocessors);
}

struct BoundedCores {
  Bounds bounds;
  int cores = 1;
};

std::vector<std::vector<Configuration>> spaces_of(std::span<const BoundedCores> devices) {
  std::vector<std::vector<Configuration>> suitable;
  std::vector<std::vector<Configuration>> all;
  for (const BoundedCores& device : devices) {
    all.push_back(autotuner::all_counts(device.bounds, device.cores));
    suitable.push_back(autotuner::counts_of_cores(device.bounds, device.cores));
  }
  return autotuner::common_counts(suitable).empty() ? all : suitable;
}

bool are_alike(const TunedDevice& a, const TunedDevice& b) { return a.model == b.model && a.cores == b.cores; }

void level_ceilings(std::vector<TunedDevice>& devices) {
  for (TunedDevice& device : devices) {
    for (const TunedDevice& other : devices) {
      if (are_alike(device, other)) device.ceiling = std::min(device.ceiling, other.ceiling);
    }
  }
}

}  // namespace

std::vector<Configuration> all_counts_on(const engine::DeviceSpec& device, const Bounds& bounds) {
  return autotuner::all_counts(bounds, engine::core_count(device));
}

std::vector<std::vector<Configuration>> counts_on(std::span<const engine::DeviceSpec> devices, const Bounds& bounds) {
  std::vector<BoundedCores> bounded;
  for (const engine::DeviceSpec& device : devices) bounded.push_back({bounds, engine::core_count(device)});
  return spaces_of(bounded);
}

std::vector<TunedDevice> tuned_devices(const JobOptions& job, int ceiling, int at_once) {
  std::vector<TunedDevice> devices;
  for (const engine::DeviceSpec& device : job.devices) {
    devices.push_back({.model = model_of(device),
                       .cores = engine::core_count(device),
                       .ceiling = ceiling,
                       .usual = device.is_cuda() ? 0 : default_learners(device),
                       .at_once = at_once});
  }
  return devices;
}

std::string lower_ceilings(const JobOptions& job, std::int64_t batches, std::vector<TunedDevice>& devices) {
  const auto problem_of = [&](int bound) {
    int learners = 0;
    for (const TunedDevice& device : devices) learners += std::min(device.ceiling, bound);
    return long_round(job, learners, batches);
  };
  const std::string too_few = problem_of(job.tuned->min);
  if (!too_few.empty()) engine::fail(engine::ErrorKind::kInvalidJob, "learners.per_device.auto.min: {}", too_few);
  const int most = std::ranges::max_element(devices, {}, &TunedDevice::ceiling)->ceiling;
  const std::string excess = problem_of(most);
  if (excess.empty()) return "";
  if (job.tuned->max_is_given) engine::fail(engine::ErrorKind::kInvalidJob, "learners.per_device.auto.max: {}", excess);
  int bound = most;
  while (!problem_of(bound).empty()) --bound;
  const std::string reason = problem_of(bound + 1);
  for (TunedDevice& device : devices) device.ceiling = std::min(device.ceiling, bound);
  return fmt::format("learners.per_device.auto: there will be at most {} of each device: {}", counted(bound, "learner"),
                     reason);
}

std::vector<TunedKind> find_kinds(std::vector<TunedDevice> devices, int min) {
  level_ceilings(devices);
  std::vector<BoundedCores> bounded;
  for (const TunedDevice& device : devices) bounded.push_back({{min, device.ceiling}, device.cores});
  const auto spaces = spaces_of(bounded);
  std::vector<TunedKind> kinds;
  for (std::size_t d = 0; d < devices.size(); ++d) {
    const auto alike = std::ranges::find_if(
        kinds, [&](const TunedKind& kind) { return are_alike(devices[kind.devices.front()], devices[d]); });
    if (alike != kinds.end()) {
      ++alike->described.devices;
      alike->devices.push_back(d);
      continue;
    }
    kinds.push_back({{1, spaces[d]}, autotuner::all_counts(bounded[d].bounds, bounded[d].cores), {d}});
  }
  return kinds;
}

}  // namespace arbalest::jobs
