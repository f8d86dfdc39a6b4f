// Reads `learners` of a job file: a number, bounds for the auto-tuner, a schedule, or growth.
#pragma once

#include <cstdint>
#include <span>
#include <string>
#include <vector>

#include "arbalest/v1/job.pb.h"
#include "dataflow/models/fields/field_issues.h"
#include "options/job_options.h"

namespace arbalest::jobs {

// The number of learners of a device if the job does not set it.
int default_learners(const engine::DeviceSpec& device);

// Reads `learners` into the corresponding fields of `options`, whose devices must be set. Writes the default into
// `learners` if it is one number for all devices.
void read_learners(v1::Learners& learners, JobOptions& options, dataflow::FieldIssues& issues);

// Adds issues for numbers of learners with which averaging is unstable. Bounds of the auto-tuner are narrowed instead,
// with a warning if the job states the upper bound.
void check_stability(JobOptions& options, dataflow::FieldIssues& issues);

// A part of the run under one scheme.
struct SchemePhase {
  sma::Options scheme;
  std::string path;  // path of the scheme in the job: "synchronization.switch[0].local_sgd"
  int learners = 1;  // at most, over all devices
  scheduler::RateScaling scaling = scheduler::RateScaling::kSqrt;  // scaling of the learning rate
};

// The schemes of the run in order. `learners`: at the start, over all devices.
std::vector<SchemePhase> scheme_phases(const JobOptions& options, int learners);

// Adds issues for numbers of learners whose round is longer than an epoch of `batches`. Bounds of the auto-tuner that
// the job does not state are narrowed instead.
void check_rounds(const v1::Learners& learners, std::int64_t batches, JobOptions& options,
                  dataflow::FieldIssues& issues);

// Describes the first round of any scheme that is longer than an epoch of `batches`; "" if there is none. `learners`:
// at the start of the run.
std::string long_round(const JobOptions& options, int learners, std::int64_t batches);
// Describes the first such round with the fewest learners that a job with bounds may have, or with all learners of
// other jobs. It serves datasets whose size only the files tell.
std::string long_round(const JobOptions& options, std::int64_t batches);

// A warning if the run, with epochs of `batches`, ends before some steps of the schedule; "" if it reaches all.
std::string unreached_steps(const JobOptions& options, std::int64_t batches);

// Whether the number of learners may change while training.
bool may_resize(const JobOptions& options);

// The largest number of learners at any time, over all devices: of this process, and of all.
int most_learners(const JobOptions& options);
// The largest number of learners of one device of this process at any time.
int most_learners_of_device(const JobOptions& options);
inline int most_learners_of_all(const JobOptions& options) {
  return most_learners(options) + options.learners_elsewhere;
}

// Why training cannot be stable with most_learners_of_all(); "" if it can.
std::string instability_of_all(const JobOptions& options);

}  // namespace arbalest::jobs
