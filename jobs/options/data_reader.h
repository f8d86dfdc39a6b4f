// The data of a job: its defaults, its checks, and what is left of it in plain values.
#pragma once

#include "arbalest/v1/data.pb.h"
#include "dataflow/models/field_issues.h"
#include "jobs/options/job_options.h"

namespace arbalest::jobs {

// Writes out what `data` leaves to its default; nothing where no dataset is chosen.
void fill_defaults(v1::Data& data);

// Reads `data`, which has its defaults and names a dataset. Adds what is wrong with it to `issues`, with paths in the
// job.
DataOptions read_data(const v1::Data& data, dataflow::FieldIssues& issues);

}  // namespace arbalest::jobs
