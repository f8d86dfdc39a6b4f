// Short names of the cases of a bench, for legends and tables.
#pragma once

#include "jobs/study/bench/bench_plan.h"

namespace arbalest::jobs {

// Sets `name` and `series_name` of every case from its job, label and variations. The name lists the values that differ
// between cases: "local_sgd, with_learners=SQRT, 4 learners"; the job's name comes first if there are several jobs.
void shorten_names(BenchPlan& plan, bool has_one_device);

}  // namespace arbalest::jobs
