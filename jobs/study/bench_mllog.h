// A run of a bench in the log format of MLPerf Training (mlcommons/logging). The format only: no claim is made to keep
// the rules of its benchmarks.
#pragma once

#include <string>

#include "jobs/study/bench.h"

namespace arbalest::jobs {

// ":::MLLOG {...}" lines. The clock starts with the process, before its own start of the clock. A run that died or was
// stopped ends with status "aborted" where it is known when, and without run_stop where not.
std::string to_mllog(const BenchResult& result, const BenchRun& run);

}  // namespace arbalest::jobs
