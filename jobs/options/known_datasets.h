// What is known of a job's dataset before it is read.
#pragma once

#include <cstdint>
#include <optional>
#include <string>

#include "arbalest/v1/data.pb.h"
#include "jobs/options/job_options.h"

namespace arbalest::jobs {

struct KnownDataset {
  std::string name;  // of its field in Data
  DataOptions::Kind kind = DataOptions::Kind::kDigits;
  std::string directory;                  // default; "": there is none
  dataflow::InputDescription input;       // nothing if the job says it
  dataflow::Normalization normalization;  // default: of its training set
  std::optional<std::int64_t> training_examples;
  std::optional<std::int64_t> test_examples;
};

// The dataset that `source` stands for; not for SOURCE_NOT_SET.
KnownDataset known_dataset(v1::Data::SourceCase source);

}  // namespace arbalest::jobs
