// What is known of a job's dataset before it is read.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "arbalest/v1/data.pb.h"
#include "jobs/options/job_options.h"

namespace arbalest::jobs {

struct KnownDataset {
  std::string name;  // of its field in Data
  DataOptions::Kind kind = DataOptions::Kind::kDigits;
  std::string directory;                  // default; "": there is none
  dataflow::InputDescription input;       // nothing if the job says it
  dataflow::Normalization normalization;  // default: of its training set
  std::vector<std::int64_t> class_sizes;  // training examples by class; empty: only the files say
  std::optional<std::int64_t> test_examples;
};

// The field of the dataset that `data` names, and its message's field for where the files lie; null if there is none.
const google::protobuf::FieldDescriptor* source_field(const v1::Data& data);
const google::protobuf::FieldDescriptor* directory_field(const v1::Data& data);

// `data` names a dataset.
KnownDataset known_dataset(const v1::Data& data);

}  // namespace arbalest::jobs
