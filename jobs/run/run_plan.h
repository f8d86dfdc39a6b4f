// What a job plans for the epochs of its run: scheme of synchronization, number of learners and learning rate.
#pragma once

#include <string>
#include <vector>

#include "jobs/options/job_options.h"

namespace arbalest::jobs {

struct PlanRow {
  double epoch = 0.0;  // completed epochs
  float rate = 0.0F;   // learning rate of one learner
  int learners = 0;    // of all devices; for a tuned job, those that it begins with
  std::string synchronization;
};

// Rows from the first epoch to the last, ascending: at most 11 at equal intervals, and one for each switch and each
// change of the number of learners. Changes stand where the job puts them, although a run carries them out at the next
// round. Changes at a mini-batch are left out if only the files tell how many an epoch has.
std::vector<PlanRow> plan_of(const JobOptions& job);

}  // namespace arbalest::jobs
