// What a job takes of memory: what its parts say of themselves, added up before any of it is allocated. Not counted are
// thread stacks, recordings, and what libraries keep to themselves.
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
#include "jobs/run/dataset_placement.h"
#include "learners/learner_pool.h"
#include "sma/synchronizer.h"

namespace arbalest::jobs {

inline constexpr int kMostLearners = 1024;  // on a device: no job file asks for more

// Bytes that allocations could get.
struct AvailableMemory {
  // As it is now.
  explicit AvailableMemory(std::span<const std::unique_ptr<engine::Device>> devices);

  std::int64_t host = 0;
  std::vector<std::int64_t> devices;  // a CPU device's is the host's
};

// Of one memory: the host's, or a GPU's.
struct MemoryUse {
  std::string name;  // "host memory", "cuda:0"
  std::int64_t needed = 0;
  std::int64_t available = 0;
};

// kOutOfMemory, and what would fit.
class DoesNotFit : public engine::Error {
 public:
  DoesNotFit(const std::string& what, int learners_that_fit)
      : Error(engine::ErrorKind::kOutOfMemory, what), learners_that_fit_(learners_that_fit) {}

  // On each device; 0: not even one.
  int learners_that_fit() const noexcept { return learners_that_fit_; }

 private:
  int learners_that_fit_;
};

class MemoryForecast {
 public:
  // `pools`: of the job's devices; they need not have created anything yet.
  MemoryForecast(const JobOptions& job, std::span<const std::unique_ptr<learners::LearnerPool>> pools,
                 const SplitSizes& sizes, AvailableMemory available);

  // Of the host and of each GPU, with so many learners on each device and the job's rings.
  std::vector<MemoryUse> uses(std::span<const int> learners_per_device) const;
  // With the same number on each device, and rings for so many; at most kMostLearners.
  int learners_that_fit() const;
  // By device, the most that the job may have at a time: as it says, or, where the number is tuned, as many as its
  // bound and memory allow (on each device; no fewer than the job's least).
  const std::vector<int>& most_learners() const noexcept { return most_learners_; }
  // Over all devices, the learners that the job's rings are made for: it never has more at a time.
  int ring_learners() const noexcept { return ring_learners_; }
  // What the user should know if memory allows fewer than the bound of a tuned job; else "".
  std::string lowered_bound() const;
  // Throws DoesNotFit, saying what is needed and what to change, if the job's own learners do not fit; of a tuned job,
  // its least.
  void check() const;

  std::int64_t dataset_bytes() const noexcept { return dataset_bytes_; }
  // Of each learner on a device, and of so many on each device in a memory.
  std::int64_t learner_bytes(std::size_t device) const { return devices_[device].learner; }
  std::int64_t bytes_of_learners(const MemoryUse& use, std::span<const int> learners_per_device) const;

 private:
  struct PerDevice {
    std::string memory;        // as in MemoryUse
    std::int64_t learner = 0;  // each
    const engine::Device* device = nullptr;
    std::int64_t rest = 0;
    int cores = 0;  // of a CPU device
  };

  std::vector<MemoryUse> uses(std::span<const int> learners_per_device, int ring_learners) const;
  std::vector<MemoryUse> uses_while_tuned(int ceiling) const;
  int find_ceiling() const;
  // What keeping so many learners together takes of a device.
  std::int64_t center_bytes(const PerDevice& device, int learners) const;

  std::vector<int> job_learners_;   // by device; of a tuned job, the least, else the most
  std::vector<int> most_learners_;  // by device
  int ring_learners_;
  sma::SynchronizerNeeds needs_;
  sma::CenterSizes sizes_;
  std::optional<LearnerBounds> tuned_;
  std::vector<PerDevice> devices_;
  std::vector<RingSize> rings_;
  std::int64_t dataset_bytes_ = 0;
  std::int64_t model_bytes_ = 0;  // of a copy on the host
  AvailableMemory available_;
};

}  // namespace arbalest::jobs
