// Forecasts the memory that a job takes, before any of it is allocated: the sum of what the job's parts report. Thread
// stacks, recordings and the libraries' own memory are not counted.
#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "engine/device.h"
#include "engine/error.h"
#include "jobs/options/job_options.h"
#include "jobs/run/data/dataset_placement.h"
#include "learners/learner_pool.h"
#include "sma/synchronizer.h"

namespace arbalest::jobs {

inline constexpr int kMostLearners = 1024;  // per device: no job file may ask for more

// Bytes that can still be allocated.
struct AvailableMemory {
  // Measures the present state.
  // `processes` of this machine share the host's memory in equal parts.
  explicit AvailableMemory(std::span<const std::unique_ptr<engine::Device>> devices, int processes = 1);

  std::int64_t host = 0;
  std::vector<std::int64_t> devices;  // for a CPU device, the same memory as `host`
};

// Use of one memory: the host's, or a GPU's.
struct MemoryUse {
  std::string name;  // "host memory", "cuda:0"
  std::int64_t needed = 0;
  std::int64_t available = 0;
};

// The error kOutOfMemory, with the number of learners that would fit.
class DoesNotFit : public engine::Error {
 public:
  DoesNotFit(const std::string& what, int learners_that_fit)
      : Error(engine::ErrorKind::kOutOfMemory, what), learners_that_fit_(learners_that_fit) {}

  // Per device; 0: not even one.
  int learners_that_fit() const noexcept { return learners_that_fit_; }

 private:
  int learners_that_fit_;
};

class MemoryForecast {
 public:
  // `pools`: one per device of the job; they need not have created their learners. `rank`: of this process. Rank 0
  // copies the whole state for a checkpoint, and each other process that of its learners.
  MemoryForecast(const JobOptions& job, std::span<const std::unique_ptr<learners::LearnerPool>> pools,
                 const SplitSizes& sizes, AvailableMemory available, int rank = 0);

  // Use of host memory and of each GPU's memory with these learners and the job's rings.
  std::vector<MemoryUse> uses(std::span<const int> learners_per_device) const;
  // The largest equal number of learners per device that fits, with rings for it; at most kMostLearners.
  int learners_that_fit() const;
  // By device, the largest number of learners that the job may have at a time: the job's own, or, if it is tuned, as
  // many as its bounds and memory allow (equal on all devices; no fewer than the job's minimum).
  const std::vector<int>& most_learners() const noexcept { return most_learners_; }
  // Learners of all devices for which the job's rings are made; the job never has more at a time.
  int ring_learners() const noexcept { return ring_learners_; }
  // A warning for the user if memory allows fewer learners than the bound of a tuned job; else "".
  std::string lowered_bound() const;
  // Throws DoesNotFit, saying what is needed and what to change, if the job's own learners do not fit; for a tuned job,
  // its minimum.
  void check() const;

  std::int64_t dataset_bytes() const noexcept { return dataset_bytes_; }
  // Memory of one learner on a device, and of all learners in one of the memories.
  std::int64_t learner_bytes(std::size_t device) const { return devices_[device].learner; }
  std::int64_t bytes_of_learners(const MemoryUse& use, std::span<const int> learners_per_device) const;

 private:
  struct PerDevice {
    std::string memory;        // name of the memory, as in MemoryUse
    std::int64_t learner = 0;  // bytes per learner
    const engine::Device* device = nullptr;
    std::int64_t rest = 0;
    int cores = 0;  // for a CPU device
  };

  std::vector<MemoryUse> uses(std::span<const int> learners_per_device, int ring_learners) const;
  std::vector<MemoryUse> uses_while_tuned(int ceiling) const;
  int find_ceiling() const;
  // Memory of a device that synchronizing this many learners takes.
  std::int64_t center_bytes(const PerDevice& device, int learners) const;

  std::vector<int> job_learners_;   // allocated at a time, by device; for a tuned job, its minimum
  std::vector<int> most_learners_;  // active at a time, by device
  int ring_learners_;
  sma::SynchronizerNeeds needs_;
  sma::CenterSizes sizes_;
  std::optional<LearnerBounds> tuned_;
  std::vector<PerDevice> devices_;
  std::vector<RingSize> rings_;
  std::int64_t dataset_bytes_ = 0;
  std::int64_t model_bytes_ = 0;  // one copy on the host
  bool saves_checkpoints_ = false;
  bool leads_;     // whether this is rank 0
  bool is_alone_;  // whether there are no other processes
  AvailableMemory available_;
};

}  // namespace arbalest::jobs
