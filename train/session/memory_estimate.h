// Estimates the memory that a job takes, before any of it is allocated: the sum of what the job's parts report. Thread
// stacks, recordings and the libraries' own memory are not counted.
#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "engine/base/error.h"
#include "engine/device.h"
#include "learners/learner_pool.h"
#include "options/job_options.h"
#include "sma/synchronizer.h"
#include "train/data/dataset_caching.h"

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

// Tells how one memory is used: the host's, a GPU's, or what device_memory_mib allows on a device.
struct MemoryUse {
  std::string name;  // "host memory", "cuda:0", "'cpu:0' under device_memory_mib"
  std::int64_t needed = 0;
  std::int64_t available = 0;
  int learners = 0;       // whose memory is part of it
  bool is_limit = false;  // the last kind
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

class MemoryEstimate {
 public:
  // `pools`: one per device of the job; they need not have created their learners. `rank`: of this process, of
  // `processes`. Rank 0 copies the whole state for a checkpoint, and each other process that of its learners.
  MemoryEstimate(const JobOptions& job, std::span<const std::unique_ptr<learners::LearnerPool>> pools,
                 const SplitSizes& sizes, AvailableMemory available, int rank = 0, int processes = 1);

  // Use of host memory and of each GPU's memory with these learners and the job's rings. If the job limits the memory
  // of each device, also the use of each device under that limit.
  std::vector<MemoryUse> uses(std::span<const int> learners_per_device) const;
  // The largest equal number of learners per device that fits, with rings for it and in the teams that divide it; at
  // most kMostLearners, and at most 1 if the model is split. A smaller number may not fit: 7 learners are no teams.
  int learners_that_fit() const;
  // By device, the largest number of learners that the job may have at a time: the job's own, or, if it is tuned, as
  // many as its bounds and memory allow (equal on all devices; no fewer than the job's minimum).
  const std::vector<int>& most_learners() const noexcept { return most_learners_; }
  // The largest number of learners that a device may hold while a tuned job changes the size of teams: those before and
  // those after. At least most_learners().
  int most_at_once() const;
  // Learners of all devices for which the job's rings are made; the job never has more at a time.
  int ring_learners() const noexcept { return ring_learners_; }
  // A warning for the user if memory allows fewer learners than the bound of a tuned job; else "".
  std::string lowered_bound() const;
  // Throws DoesNotFit, saying what is needed and what to change, if the job's own learners do not fit; for a tuned job,
  // its minimum.
  void check() const;

  std::int64_t dataset_bytes() const noexcept { return dataset_bytes_; }
  // Memory of one learner on a device, and of all learners in one of the memories.
  std::int64_t learner_bytes(std::size_t device) const { return devices_[device].bytes_of_each(job_learners_[device]); }
  std::int64_t bytes_of_learners(const MemoryUse& use, std::span<const int> learners_per_device) const;

 private:
  struct PerDevice {
    std::string memory;  // name of the memory, as in MemoryUse
    const learners::LearnerPool* pool = nullptr;
    std::string limited = {};  // name of the memory that the job limits, as in MemoryUse
    std::int64_t rest = 0;
    int cores = 0;            // for a CPU device
    bool teams_vary = false;  // whether the size of its teams changes with the number of learners

    // Bytes of each of `learners` learners. A number that changes may leave any learner without a team, and a stream
    // takes as much for one as for several.
    std::int64_t bytes_of_each(int learners) const;
  };

  std::vector<MemoryUse> uses(std::span<const int> learners_per_device, int ring_learners) const;
  std::vector<MemoryUse> uses_while_tuned(int ceiling) const;
  // Returns what makes the job fit, where `most` learners on each device do.
  std::string remedy(const MemoryUse& use, int most) const;
  int find_ceiling() const;

  std::vector<int> job_learners_;   // allocated at a time, by device; for a tuned job, its minimum
  std::vector<int> most_learners_;  // active at a time, by device
  int ring_learners_;
  sma::SynchronizerNeeds needs_;
  sma::CentralSizes sizes_;
  std::optional<LearnerBounds> tuned_;
  std::vector<PerDevice> devices_;
  std::vector<engine::Device*> opened_;  // these devices
  std::vector<RingSize> rings_;
  std::int64_t dataset_bytes_ = 0;
  std::int64_t model_bytes_ = 0;     // one copy on the host
  std::int64_t exchange_bytes_ = 0;  // what the host takes besides for a split model
  bool is_split_ = false;            // each device has one learner, for its part of the model
  bool saves_checkpoints_ = false;
  std::optional<std::int64_t> limit_;  // JobOptions::device_memory_bytes
  bool is_alone_;                      // whether there are no other processes
  AvailableMemory available_;
};

}  // namespace arbalest::jobs
