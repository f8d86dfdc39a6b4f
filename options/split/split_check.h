// Checks jobs whose model is split over devices (docs/parallelism.md).
#pragma once

#include <string>

#include "arbalest/v1/job.pb.h"
#include "dataflow/models/fields/field_issues.h"
#include "options/job_options.h"
#include "options/readers/run_shape.h"

namespace arbalest::jobs {

// Whether the job divides layers over its devices and those of the run's other processes, each of which has one
// learner. One device has whole layers, whatever the job says.
bool is_split(const JobOptions& options);

// Options that were read without an issue. What depends on the others cannot be judged.
struct SoundOptions {
  bool synchronization = true;
  bool learners = true;
};

// Adds issues for fields that exclude split layers, and for layers that the devices of all processes cannot divide, if
// their number is known. All other options must have been read.
void check_split(const v1::Job& job, const JobOptions& options, const RunShape& shape, const SoundOptions& sound,
                 dataflow::FieldIssues& issues);

// Says that the layers stay whole if the run has one device; "" if they do not.
std::string split_warning(const JobOptions& options, const RunShape& shape);

}  // namespace arbalest::jobs
