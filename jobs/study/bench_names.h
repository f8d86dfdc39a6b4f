// Short names of the cases of a bench, for legends and tables.
#pragma once

#include "jobs/study/bench_plan.h"

namespace arbalest::jobs {

// Sets `name` and `series_name` of every case from its job, label and variations: the values that differ between cases,
// as "local_sgd, with_learners=SQRT, 4 learners", after the job's name if there are several jobs.
void shorten_names(BenchPlan& plan, bool has_one_device);

}  // namespace arbalest::jobs
