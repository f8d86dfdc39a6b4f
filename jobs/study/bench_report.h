// What `arbalest bench` prints and keeps: a table, bench.json, bench.html and, beside each run's log, its mllog lines.
#pragma once

#include <filesystem>
#include <string>

#include <nlohmann/json.hpp>

#include "jobs/study/bench.h"
#include "jobs/study/bench_statistics.h"

namespace arbalest::jobs {

inline constexpr const char* kBenchJson = "bench.json";
inline constexpr const char* kBenchPage = "bench.html";

// Names are what other programs read; what is not known, or was not reached, is null.
nlohmann::ordered_json to_json(const BenchResult& result);
// A row for each case, and a line for each run that died, was stopped or did not run.
std::string to_text(const BenchResult& result);
// The runs of a case, in the order of the seeds.
std::vector<BenchRun> runs_of(const BenchResult& result, std::size_t case_index);

// "12.3", "12.3 (11.9 to 13.0)", "not reached", "12.3 (11.9 to not reached)", "-" if there is nothing; `decimals` of
// each number.
std::string spread_text(const BenchSpread& spread, int count, int decimals);

// "complete", "stopped", or "running" while there are runs to come: of a bench that is killed it stays that.
const char* status_of(const BenchResult& result);

// Writes bench.json and bench.html into the bench's directory; a run's mllog lines. Each file is replaced whole or not
// at all. Throw as fail_write does.
void write_bench(const BenchResult& result, const std::filesystem::path& directory);
void write_mllog(const BenchResult& result, const BenchRun& run, const std::filesystem::path& directory);

}  // namespace arbalest::jobs
