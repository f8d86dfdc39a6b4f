// Writes a run of a bench in the log format of MLPerf Training (mlcommons/logging). Only the format is used; the runs
// do not claim to follow the rules of MLPerf's benchmarks.
#pragma once

#include <string>

#include "study/bench/bench.h"

namespace arbalest::jobs {

// Returns ":::MLLOG {...}" lines. Their clock starts with the process, before the run's own clock. A run that died or
// was stopped ends with status "aborted" if the time is known, and without run_stop otherwise.
std::string to_mllog(const BenchResult& result, const BenchRun& run);

}  // namespace arbalest::jobs
