// The devices of a run as the auto-tuner sees them, and the numbers of learners that they may have.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <string>
#include <vector>

#include "autotuner/devices_tuner.h"
#include "engine/backends/devices.h"
#include "options/job_options.h"

namespace arbalest::jobs {

// Returns every number of learners within the bounds, for that device.
std::vector<autotuner::Configuration> all_counts_on(const engine::DeviceSpec& device, const autotuner::Bounds& bounds);
// Returns, for each of these devices, the numbers that it may be tuned to, ascending: those that suit its cores, or
// every number if no suitable number is common to all devices. Throws std::invalid_argument unless 1 <= min <= max.
std::vector<std::vector<autotuner::Configuration>> counts_on(std::span<const engine::DeviceSpec> devices,
                                                             const autotuner::Bounds& bounds);

// A device of this process or of another one.
struct TunedDevice {
  std::string model;  // of the GPU, or of the processor
  int cores = 1;      // 1 for a GPU
  int ceiling = 1;    // largest number of learners that the job's bounds and memory allow
  int usual = 0;      // number of learners if nothing was measured; 0: nothing is known
  int at_once = 0;    // Session::learners_at_once(); 0: the size of its teams is not tuned
};

// Describes the devices of a job with bounds. `ceiling`: Session::learner_ceiling(). `at_once`: as above.
std::vector<TunedDevice> tuned_devices(const JobOptions& job, int ceiling, int at_once = 0);

// Lowers the ceilings until a round of all devices' learners is no longer than an epoch of `batches`. Returns a warning
// if they were lowered, else "". Only the files may tell how many examples there are; the job's reader does the same
// for other data. Throws kInvalidJob if the job names a bound that is too large.
std::string lower_ceilings(const JobOptions& job, std::int64_t batches, std::vector<TunedDevice>& devices);

// Devices of one kind are alike and always have the same number of learners. `devices`: their indices among all.
struct TunedKind {
  autotuner::DeviceKind described;
  std::vector<autotuner::Configuration> every;  // every number within the bounds
  std::vector<std::size_t> devices;
};

// Devices are alike if they have the same model and number of cores. Their ceiling is the lowest of them all, because
// the memory that is left differs a little from process to process. Throws std::invalid_argument unless 1 <= min <= the
// ceiling of every device.
std::vector<TunedKind> find_kinds(std::vector<TunedDevice> devices, int min);

}  // namespace arbalest::jobs
