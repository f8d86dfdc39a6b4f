// Describes the model of a job for readers of its file.
#pragma once

#include <string>
#include <vector>

#include "options/job_options.h"
#include "saved_model/model_description.h"

namespace arbalest::jobs {

// `class_names`: by class; empty: classes are numbers. Datasets whose images all have the model's size have no rule for
// other images; if that size is square, the description scales them to it.
ModelDescription describe_model(const JobOptions& job, const std::vector<std::string>& class_names);

}  // namespace arbalest::jobs
