// Where a job's datasets lie and how mini-batches come from them: gathered by the steps where the dataset is within
// reach of the device, else copied through a ring.
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "dataflow/input/dataset.h"
#include "dataflow/input/resident_data.h"
#include "engine/device.h"
#include "jobs/options/job_options.h"
#include "learners/learner_pool.h"

namespace arbalest::jobs {

// A split of a job's dataset.
struct SplitSize {
  std::int64_t examples = 0;
  bool is_resident = false;  // on all devices
  std::size_t bytes = 0;     // that it keeps in host memory
};

// The sets that a job reads. The validation set lies behind the test set in one dataset.
struct SplitSizes {
  std::optional<SplitSize> training{};
  std::optional<SplitSize> test{};
  std::optional<SplitSize> validation{};
};

// A ring of mini-batches. How long it is follows from the number of learners.
struct RingSize {
  bool is_resident = false;  // of indices
  std::int64_t batch_size = 1;
  std::int64_t pixels = 1;             // of an image
  std::int64_t batches_per_epoch = 1;  // or of the pass
  std::optional<int> stride{};         // scheduler: steps at once; none: not trained on, but passed from first to last

  int slots(int learners) const;
  std::size_t bytes(int learners) const;  // of host memory
};

// Whether statistics are estimated anew for the central model.
bool reestimates_statistics(const JobOptions& job, const learners::LearnerPool& pool);

// Examples of an evaluation mini-batch. A function of the job alone, so that a saved model is evaluated again as it
// was.
std::int64_t evaluation_batch_size(const JobOptions& job);

RingSize training_ring_size(const JobOptions& job, const SplitSize& split);
// Of the mini-batches on which batch normalization's statistics are estimated anew.
RingSize statistics_ring_size(const JobOptions& job, const SplitSize& training);
// The ring of the test set or of the validation set.
RingSize evaluation_ring_size(const JobOptions& job, const SplitSize& split);

// Whether a dataset of so many bytes may lie on the device: on a GPU if it takes at most a quarter of the free memory,
// because learners need the rest; on the CPU always, for its devices read the dataset's own memory.
bool may_reside(const engine::Device& device, std::size_t bytes);

// The dataset on every device; nothing where it has no bytes, or does not fit on one of them: mini-batches then come
// through a ring, which costs time, and a warning says so.
std::vector<dataflow::ResidentData> place_dataset(const dataflow::Dataset& dataset,
                                                  std::span<const std::unique_ptr<engine::Device>> devices,
                                                  std::vector<std::string>& warnings);

}  // namespace arbalest::jobs
