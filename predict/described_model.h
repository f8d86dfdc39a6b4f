// A saved model with all that is needed to use it.
#pragma once

#include <string>
#include <vector>

#include "dataflow/parameter_layout.h"
#include "options/job_options.h"
#include "saved_model/model_description.h"

namespace arbalest::jobs {

struct DescribedModel {
  JobOptions job;
  ModelDescription description;
  std::vector<dataflow::NamedTensor> tensors;
  std::vector<std::string> warnings = {};  // where the job says something else than the file
};

// Reads the file at `path`, a model of the job. Throws kCheckpoint if the file is unusable, if its SHA-256 differs from
// `sha256` ("" if unknown), and as read_saved_description() does.
DescribedModel read_described_model(JobOptions job, const std::string& path, const std::string& sha256);

}  // namespace arbalest::jobs
