// Writes a bench as Markdown for a page of results: its tables, and links to its charts.
#pragma once

#include <string>

#include "jobs/study/bench/bench.h"

namespace arbalest::jobs {

// The charts are files in the same directory (jobs/study/bench/bench_report.h).
std::string to_markdown(const BenchResult& result);

}  // namespace arbalest::jobs
