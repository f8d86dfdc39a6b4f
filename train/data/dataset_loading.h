// Loads the datasets that a job describes.
#pragma once

#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "dataflow/input/dataset.h"
#include "engine/host/memory_budget.h"
#include "engine/host/pool.h"
#include "options/job_options.h"

namespace arbalest::jobs {

enum class Decoding {
  // Images in files are decoded at once, if decoding is deterministic and they fit into a quarter of the memory.
  kAhead,
  kOnReading  // decoded each time they are read
};

// Loads a split as its files have it. The training split is augmented and still includes the examples that are split
// off it for validation; the validation split has files of its own. Adds what the user should know to `warnings`.
// Throws ErrorKind::kData, and kOutOfMemory for examples that are kept in memory and do not fit into `budget`.
std::unique_ptr<dataflow::Dataset> load_dataset(
    const DataOptions& data, const std::string& data_root, dataflow::Split split, engine::host::Pool& pool,
    std::vector<std::string>& warnings, Decoding ahead = Decoding::kAhead,
    const engine::host::MemoryBudget& budget = engine::host::MemoryBudget());

struct TrainingSets {
  std::unique_ptr<dataflow::Dataset> training;    // augmented
  std::unique_ptr<dataflow::Dataset> validation;  // not augmented; null if the job has no validation set
};

// Loads the training set and the validation set, which is split off it or has files of its own. Throws as
// load_dataset() does, ErrorKind::kData also if the two do not fit together, and DataOptions::validation's error if the
// classes cannot be divided as asked.
TrainingSets load_training_sets(const DataOptions& data, const std::string& data_root, engine::host::Pool& pool,
                                std::vector<std::string>& warnings,
                                const engine::host::MemoryBudget& budget = engine::host::MemoryBudget());

// Loads the validation set alone, which the job must have. The training set is read only if the validation set is split
// off it. Throws as load_training_sets() does, but does not compare files of its own with the training set.
std::unique_ptr<dataflow::Dataset> load_validation_set(const DataOptions& data, const std::string& data_root,
                                                       engine::host::Pool& pool, std::vector<std::string>& warnings);

// Counts the examples of each class. A dataset without classes counts as one class. Examples whose class cannot be read
// are not counted.
std::vector<std::int64_t> class_sizes(const dataflow::Dataset& data);

}  // namespace arbalest::jobs
