// The table that `arbalest inspect` prints: learning rate, number of learners and synchronization scheme by epoch. The
// run itself does not read it.
#pragma once

#include <string>
#include <vector>

#include "options/job_options.h"

namespace arbalest::jobs {

struct PlanRow {
  double epoch = 0.0;          // completed epochs
  float learning_rate = 0.0F;  // of one learner
  int learners = 0;            // total over all devices; for an auto-tuned job, the number at the start
  std::string synchronization;
};

// Returns rows in ascending order, from epoch 0 to max_epochs: at most 11 evenly spaced whole epochs, and one row for
// each change of scheme or number of learners. A change is listed at the epoch that the job states; the run applies it
// at the next round. A change given by mini-batch is omitted if the number of examples is known only after the
// dataset's files are read.
std::vector<PlanRow> plan_of(const JobOptions& job);

}  // namespace arbalest::jobs
