// The tables that a bench's text, page and Markdown share.
#pragma once

#include <string>
#include <vector>

#include "study/bench/bench.h"
#include "study/bench/bench_statistics.h"

namespace arbalest::jobs {

// A header row, and rows with as many cells.
using TableRows = std::vector<std::vector<std::string>>;

// One row per case: the way to the target. Empty if there is no target.
TableRows time_rows(const BenchResult& result);
// One row per case: accuracies in percent, throughput and replica distance at the end.
TableRows accuracy_rows(const BenchResult& result);
// One row per case, and one column for each of some epochs: accuracies in percent. Empty if no run has completed an
// epoch.
TableRows epoch_rows(const BenchResult& result, bool with_ranges);
// One row per run, in the order in which they run.
TableRows run_rows(const BenchResult& result);
// Number of measured runs to which other programs left too little processor time.
int disturbed_runs(const BenchResult& result);
// Explains the numbers, in sentences.
std::string table_notes(const BenchResult& result);

// Picks epochs between 1 and `last`, including both; at most ten.
std::vector<int> shown_epochs(int last);

// "12.3", "12.3 (11.9 to 13.0)", "not reached", "12.3 (11.9 to not reached)"; "-" if there is no value. `decimals`:
// digits behind the point.
std::string spread_text(const BenchSpread& spread, int count, int decimals);
// In percent (jobs::percent): "98.77 (98.70 to 98.81)"; "-" if there is no value.
std::string percent_spread_text(const BenchSpread& spread, int count);
// "2 of 3", "2 of 3, 1 diverged, 1 died": runs that reached the target or, without a target, trained all epochs.
std::string how_many(const BenchStatistics& statistics, bool has_target);

}  // namespace arbalest::jobs
