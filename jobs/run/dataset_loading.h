// From what a job says of its data to the data.
#pragma once

#include <memory>
#include <string>
#include <vector>

#include "dataflow/input/dataset.h"
#include "engine/host/pool.h"
#include "jobs/options/job_options.h"

namespace arbalest::jobs {

enum class Decoding {
  kAhead,     // of images of files: at once, where they are always the same and fit into a quarter of the memory
  kOnReading  // each time that they are read
};

// Loads a split as its files have it. The training split is augmented, and includes the validation examples. What the
// user should know is added to `warnings`. Throws ErrorKind::kData.
std::unique_ptr<dataflow::Dataset> load_dataset(const DataOptions& data, const std::string& data_root,
                                                dataflow::Split split, engine::host::Pool& pool,
                                                std::vector<std::string>& warnings, Decoding ahead = Decoding::kAhead);

struct TrainingSets {
  std::unique_ptr<dataflow::Dataset> training;    // augmented
  std::unique_ptr<dataflow::Dataset> validation;  // not augmented; null if the job has no validation set
};

// Loads the training set and divides it as the job says. Throws ErrorKind::kData, and DataOptions::validation's error
// if the classes cannot be divided so.
TrainingSets load_training_sets(const DataOptions& data, const std::string& data_root, engine::host::Pool& pool,
                                std::vector<std::string>& warnings);

}  // namespace arbalest::jobs
