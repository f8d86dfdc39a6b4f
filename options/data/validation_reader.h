// Reads which examples validate: a part of the training set, or those of files of their own.
#pragma once

#include "arbalest/v1/data.pb.h"
#include "dataflow/models/fields/field_issues.h"
#include "options/data/known_datasets.h"
#include "options/job_options.h"

namespace arbalest::jobs {

// Path of the field that says how large a part of the training set validates.
inline constexpr const char* kFractionPath = "data.validation.fraction";

// Sets the validation set of `options`, and the known sizes of the training set and of the validation set. `data` must
// have its defaults, and `known` is its dataset. Adds issues with paths in the job.
void read_validation(const v1::Data& data, const KnownDataset& known, DataOptions& options,
                     dataflow::FieldIssues& issues);

}  // namespace arbalest::jobs
