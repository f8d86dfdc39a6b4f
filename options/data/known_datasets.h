// Facts about a job's dataset that are known before it is read.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "arbalest/v1/data.pb.h"
#include "options/job_options.h"

namespace arbalest::jobs {

struct KnownDataset {
  std::string name;  // name of its field in Data
  DataOptions::Kind kind = DataOptions::Kind::kDigits;
  dataflow::InputDescription input;       // empty if the job describes it
  dataflow::Normalization normalization;  // default: the statistics of its training set
  std::vector<std::int64_t> class_sizes;  // training examples by class; empty: only the files tell
  std::optional<std::int64_t> test_examples;
  std::vector<std::string> class_names = {};  // empty: only the files tell
};

// source_field(): the field of the dataset that `data` names. directory_field(): the field of that dataset's message
// with the directory of its files; null if there is none.
const google::protobuf::FieldDescriptor* source_field(const v1::Data& data);
const google::protobuf::FieldDescriptor* directory_field(const v1::Data& data);

// `data` must name a dataset.
KnownDataset known_dataset(const v1::Data& data);

}  // namespace arbalest::jobs
