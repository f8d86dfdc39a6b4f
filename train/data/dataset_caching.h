// Places a job's datasets and sizes the rings of mini-batches. If the dataset is in a device's memory, the steps gather
// mini-batches there; else mini-batches are copied through a ring.
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "dataflow/input/batches/cached_data.h"
#include "dataflow/input/dataset.h"
#include "engine/device.h"
#include "learners/learner_pool.h"
#include "options/job_options.h"

namespace arbalest::jobs {

// A split of a job's dataset.
struct SplitSize {
  std::int64_t examples = 0;
  bool is_cached = false;  // whether it lies on all devices
  std::size_t bytes = 0;   // host memory of the split, also if devices hold copies
};

// Sizes of a job's splits.
struct SplitSizes {
  SplitSize training;
  SplitSize test;
  std::optional<SplitSize> validation{};  // unset if the job has none
};

// Size of a ring of mini-batches. The number of slots depends on the number of learners.
struct RingSize {
  // True: slots hold the examples' indices, and the device gathers the examples. False: slots hold the examples.
  bool is_cached = false;
  std::int64_t batch_size = 1;
  dataflow::InputDescription input{};  // of an example
  std::int64_t batches_per_pass = 1;   // mini-batches of one pass over the ring's data; for training, of one epoch
  // Steps of each learner in the scheduler's longest iteration; unset for a finite ring (evaluation, statistics).
  std::optional<int> steps_per_iteration{};
  int steps_within_bound = 0;  // for training: sma::most_steps_within_bound

  int slots(int learners) const;
  std::size_t bytes(int learners) const;  // host memory that it takes
};

// Whether batch normalization's statistics are re-estimated for the central model.
bool reestimates_statistics(const JobOptions& job, const learners::LearnerPool& pool);

// Examples per mini-batch of evaluation. It depends on the job alone, so that a saved model is evaluated again in the
// same way.
std::int64_t evaluation_batch_size(const JobOptions& job);

RingSize training_ring_size(const JobOptions& job, const SplitSize& split);
// The ring of the mini-batches on which batch normalization's statistics are re-estimated.
RingSize statistics_ring_size(const JobOptions& job, const SplitSize& training);
// The ring of the test set or of the validation set.
RingSize evaluation_ring_size(const JobOptions& job, const SplitSize& split);

// Whether a dataset of this many bytes may lie on the device. On a GPU it may take at most a quarter of the free
// memory, because learners need the rest. A CPU device reads the dataset's own memory, so there it always may.
bool may_be_cached(const engine::Device& device, std::size_t bytes);

// Places the dataset on every device. Returns an empty vector if the dataset is not held as bytes, or if it does not
// fit on some device; only the second case adds a warning. Mini-batches are then copied through a ring, which is
// slower.
std::vector<dataflow::CachedData> cache_dataset(const dataflow::Dataset& dataset,
                                                std::span<const std::unique_ptr<engine::Device>> devices,
                                                std::vector<std::string>& warnings);

}  // namespace arbalest::jobs
