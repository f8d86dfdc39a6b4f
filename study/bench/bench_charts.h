// Charts of a bench that compare its cases.
#pragma once

#include <optional>
#include <string>

#include "study/bench/bench.h"
#include "study/bench/bench_statistics.h"
#include "study/svg_chart.h"

namespace arbalest::jobs {

bool has_validation(const BenchResult& result);

// "Test accuracy": what runs are judged by (BenchPlan::accuracy_text), at the beginning of a title.
std::string accuracy_title(const BenchResult& result);

// One curve per case: the median over its runs of the accuracy that is compared with the target, at the end of each
// epoch, with the range as a band.
LineChart accuracy_over_epochs(const BenchResult& result);

// One curve per series of cases: the median test accuracy at the end of training over the number of learners of all
// devices, with the range as whiskers. None if all runs have the same number of learners.
std::optional<LineChart> accuracy_over_learners(const BenchResult& result);

}  // namespace arbalest::jobs
