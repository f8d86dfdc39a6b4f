// Describes the model of a job for readers of its file.
#pragma once

#include <string>
#include <vector>

#include "jobs/export/model_description.h"
#include "jobs/options/job_options.h"

namespace arbalest::jobs {

// `class_names`: by class; empty: classes are numbers. Datasets whose images all have the model's size have no rule for
// other images; if that size is square, the description scales them to it.
ModelDescription describe_model(const JobOptions& job, const std::vector<std::string>& class_names);

}  // namespace arbalest::jobs
