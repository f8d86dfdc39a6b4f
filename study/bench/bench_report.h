// Output of `arbalest bench`: tables on the console, bench.json, bench.html, bench.md with its charts, and mllog lines
// beside each run's log.
#pragma once

#include <filesystem>
#include <string>

#include <nlohmann/json.hpp>

#include "study/bench/bench.h"
#include "study/bench/bench_statistics.h"

namespace arbalest::jobs {

inline constexpr const char* kBenchJson = "bench.json";
inline constexpr const char* kBenchPage = "bench.html";
inline constexpr const char* kBenchMarkdown = "bench.md";
inline constexpr const char* kEpochChart = "accuracy-over-epochs.svg";
inline constexpr const char* kLearnerChart = "accuracy-over-learners.svg";  // only if the number of learners varies

// Names are an interface for other programs. Values that are unknown or were not reached are null. A run that was not
// measured lacks all measured fields, and without a validation set the validation fields are missing. The rows of
// epochs have either the test accuracy or the validation accuracy.
nlohmann::ordered_json to_json(const BenchResult& result);
// Tables with one row per case. Notes follow: one line for each run that died or was stopped, and one with the number
// of runs that did not run.
std::string to_text(const BenchResult& result);
// The runs of a case, in the order of the seeds.
std::vector<BenchRun> runs_of(const BenchResult& result, std::size_t case_index);

// "complete", "stopped", or "running" while runs are left. If a bench is killed, its status stays "running".
const char* status_of(const BenchResult& result);

// One line for each time that the bench was resumed.
std::string resumption_notes(const BenchResult& result);

// write_bench() writes bench.json, from which a bench can be resumed, and the other files of the bench's directory;
// write_mllog() writes a run's mllog lines. Each file is replaced whole or not at all; write_bench() removes
// kLearnerChart if it is no longer drawn. Writing throws as fail_write does, removing throws
// std::filesystem::filesystem_error.
void write_bench(const BenchResult& result, const std::filesystem::path& directory);
void write_mllog(const BenchResult& result, const BenchRun& run, const std::filesystem::path& directory);

}  // namespace arbalest::jobs
