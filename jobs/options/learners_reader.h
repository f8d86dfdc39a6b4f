// `learners` of a job file: a number, bounds for the auto-tuner, a schedule or growth.
#pragma once

#include <cstdint>
#include <span>
#include <string>
#include <vector>

#include "arbalest/v1/job.pb.h"
#include "dataflow/models/field_issues.h"
#include "jobs/options/job_options.h"

namespace arbalest::jobs {

inline constexpr dataflow::Range<int> kLearnersPerDevice{1, 1024};

// Of a device whose number of learners the job leaves open.
int default_learners(const engine::DeviceSpec& device);

// Reads `learners` into the fields of `options` that say how many there are; its devices are read already. Writes into
// `learners` what follows from the devices, if it is one number for all, and the default objective of the auto-tuner.
void read_learners(v1::Learners& learners, JobOptions& options, dataflow::FieldIssues& issues);

// Numbers of learners that averaging does not bear. The auto-tuner's bounds are drawn in instead,
// with a warning where the job states the upper one.
void check_stability(const v1::Learners& learners, JobOptions& options, dataflow::FieldIssues& issues);

// A stretch of the run under one scheme.
struct SchemePhase {
  sma::Options scheme;
  std::string path;  // of the scheme in the job: "synchronization.switch[0].local_sgd"
  int learners = 1;  // over all devices, at most
  scheduler::LearnerScaling scaling = scheduler::LearnerScaling::kSqrt;  // of the learning rate
};

// The schemes of the run in their order. `learners`: at the start, over all devices.
std::vector<SchemePhase> scheme_phases(const JobOptions& options, int learners);

// Numbers of learners for whose round an epoch of `batches` is too short. Bounds of the auto-tuner that the job does
// not state are drawn in instead.
void check_rounds(const v1::Learners& learners, std::int64_t batches, JobOptions& options,
                  dataflow::FieldIssues& issues);

// The first round, of any scheme, that is longer than an epoch of `batches`; "" if none is. For a data set whose size
// the files tell.
std::string long_round(const JobOptions& options, std::int64_t batches);

// That the run, of epochs of `batches`, ends before some steps of the schedule; "" if it reaches all.
std::string unreached_steps(const JobOptions& options, std::int64_t batches);

// Whether that changes while training.
bool may_resize(const JobOptions& options);

// Over all devices, at most, at any time.
int most_learners(const JobOptions& options);

}  // namespace arbalest::jobs
