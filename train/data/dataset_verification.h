// Checks whether every example of a job's datasets can be read.
#pragma once

#include <cstdint>
#include <filesystem>
#include <string>
#include <vector>

#include "options/job_options.h"
#include "train/data/class_table.h"

namespace arbalest::jobs {

struct SplitVerification {
  std::string name;  // "mnist train"
  std::int64_t examples = 0;
  std::vector<std::int64_t> examples_of_class;  // readable examples by class; empty if labels are numbers
  std::vector<std::string> problems;            // errors of the unreadable examples, in their order
};

struct DatasetVerification {
  std::vector<SplitVerification> splits;  // training, test, and the validation set if it has files of its own
  std::vector<std::string> warnings;
  std::vector<std::string> problems = {};  // of the sets as a whole
  ClassTable classes = {};                 // numbers, folders and names

  bool is_sound() const;
};

// Reads and decodes all examples of all splits on all cores. Compares the numbers of examples with those of a published
// dataset, and the names of the classes with those of the model beside `job_file`, if the job is that of a run; ""
// compares no names. Throws ErrorKind::kData if a dataset is wrong as a whole.
DatasetVerification verify_dataset(const JobOptions& job, const std::string& data_root,
                                   const std::filesystem::path& job_file = {});

// "mnist train: 60000 examples, 10 classes of 5421 to 6742"
std::string to_text(const SplitVerification& split);

}  // namespace arbalest::jobs
