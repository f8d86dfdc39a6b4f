// What `arbalest bench` prints and keeps: tables, bench.json, bench.html, bench.md with its charts and, beside each
// run's log, its mllog lines.
#pragma once

#include <filesystem>
#include <string>

#include <nlohmann/json.hpp>

#include "jobs/study/bench.h"
#include "jobs/study/bench_statistics.h"

namespace arbalest::jobs {

inline constexpr const char* kBenchJson = "bench.json";
inline constexpr const char* kBenchPage = "bench.html";
inline constexpr const char* kBenchMarkdown = "bench.md";
inline constexpr const char* kEpochChart = "accuracy-over-epochs.svg";
inline constexpr const char* kLearnerChart = "accuracy-over-learners.svg";  // only if the number of learners varies

// Names are what other programs read; what is not known, or was not reached, is null.
nlohmann::ordered_json to_json(const BenchResult& result);
// Rows for each case, and a line for each run that died, was stopped or did not run.
std::string to_text(const BenchResult& result);
// The runs of a case, in the order of the seeds.
std::vector<BenchRun> runs_of(const BenchResult& result, std::size_t case_index);

// "complete", "stopped", or "running" while there are runs to come: of a bench that is killed it stays that.
const char* status_of(const BenchResult& result);

// A line for each time that the bench was gone on with.
std::string resumption_notes(const BenchResult& result);

// Writes bench.json, from which a bench can be gone on with, and the other files of the bench's directory; a run's
// mllog lines. Each file is replaced whole or not at all. Throw as fail_write does.
void write_bench(const BenchResult& result, const std::filesystem::path& directory);
void write_mllog(const BenchResult& result, const BenchRun& run, const std::filesystem::path& directory);

}  // namespace arbalest::jobs
