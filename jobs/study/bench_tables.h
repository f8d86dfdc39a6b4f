// The tables that a bench's text, page and Markdown share.
#pragma once

#include <string>
#include <vector>

#include "jobs/study/bench.h"
#include "jobs/study/bench_statistics.h"

namespace arbalest::jobs {

// A header, and rows of as many cells.
using TableRows = std::vector<std::vector<std::string>>;

// A row for each case: the way to the target. Nothing if there is no target.
TableRows time_rows(const BenchResult& result);
// A row for each case: accuracies in percent, throughput and replica distance at the end.
TableRows accuracy_rows(const BenchResult& result);
// A row for each case, a column for each of some epochs: accuracies in percent. Nothing if no run has come to the end
// of an epoch.
TableRows epoch_rows(const BenchResult& result, bool with_ranges);
// A row for each run, in the order in which they run.
TableRows run_rows(const BenchResult& result);
// What the numbers are, as sentences.
std::string table_notes(const BenchResult& result);

// Some of 1 to `last`, both of them and at most ten in all.
std::vector<int> shown_epochs(int last);

// "12.3", "12.3 (11.9 to 13.0)", "not reached", "12.3 (11.9 to not reached)", "-" if there is nothing; `decimals` of
// each number.
std::string spread_text(const BenchSpread& spread, int count, int decimals);
// In percent, rounded down: "98.76 (98.70 to 98.81)"; "-" if there is nothing.
std::string percent_spread_text(const BenchSpread& spread, int count);
// "2 of 3", "2 of 3, 1 diverged, 1 died": runs that have reached the target, or trained all epochs where there is none.
std::string how_many(const BenchStatistics& statistics, bool has_target);

}  // namespace arbalest::jobs
