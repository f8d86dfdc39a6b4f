#include "study/bench/bench_resume.h"

#include <fcntl.h>
#include <sys/file.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <fstream>
#include <utility>

#include <fmt/format.h>
#include <nlohmann/json.hpp>

#include "engine/base/error.h"
#include "messages/text.h"
#include "report/json.h"
#include "report/output_directory.h"
#include "study/bench/bench_report.h"

namespace arbalest::jobs {

using engine::ErrorKind;
using engine::fail;
using nlohmann::ordered_json;
namespace fs = std::filesystem;

namespace {

ordered_json read_bench_json(const fs::path& directory) {
  std::ifstream file(directory / kBenchJson);
  return ordered_json::parse(file);
}

template <typename T>
void check_same(const char* what, const T& then, const T& now, const fs::path& directory) {
  if (then == now) return;
  fail(ErrorKind::kUsage,
       "the bench in '{}' has another plan: {} {} then, and {} now; choose another directory with "
       "--output",
       directory.string(), what, ordered_json(then).dump(), ordered_json(now).dump());
}

void check_same_plan(const ordered_json& then, const BenchResult& now, const fs::path& directory) {
  check_same("its target accuracy is", then.at("target_accuracy"), null_unless_set(now.plan.target), directory);
  check_same("its seeds are", then.at("seeds"), ordered_json(now.plan.seeds), directory);
  check_same("--trace is", then.at("traced").get<bool>(), now.traced, directory);
  const ordered_json& cases = then.at("cases");
  for (std::size_t i = 0; i < std::min(cases.size(), now.plan.cases.size()); ++i) {
    const BenchCase& of = now.plan.cases[i];
    check_same(fmt::format("case {} is", i + 1).c_str(), cases[i].at("label"), ordered_json(of.label), directory);
    if (cases[i].at("job_sha256") == of.job_sha256) continue;
    fail(ErrorKind::kUsage,
         "the bench in '{}' has another plan: '{}' has changed since, by its file, a --set or another program's "
         "defaults; choose another directory with --output",
         directory.string(), of.label);
  }
  check_same("its number of cases is", cases.size(), now.plan.cases.size(), directory);
}

// Names of changed fields, without those that always change.
std::vector<std::string> changed_fields(const ordered_json& then, const ordered_json& now) {
  std::vector<std::string> changed;
  for (const auto& [name, value] : now.items()) {
    if (name == "available_memory_bytes" || name == "cgroup") continue;
    if (!then.contains(name) || then.at(name) != value) changed.push_back(name);
  }
  return changed;
}

// Takes over the run that `then` describes, if it was measured and its directory can still be read.
void keep_if_measured(const ordered_json& then, const BenchContext& context, bool has_target, BenchRun& run) {
  BenchRun kept = run;
  kept.exit_code = then.at("exit_code");
  kept.directory = then.at("directory");
  kept.log = then.at("log");
  kept.start_milliseconds = then.at("start_milliseconds");
  if (!then.contains("epoch_rows")) return;  // only measured runs have it
  if (then.contains("processor")) kept.processor = processor_from(then.at("processor"));
  const std::string problem = read_run(context.directory / kept.directory, has_target, kept);
  if (problem.empty() && kept.is_measured()) {
    run = std::move(kept);
  } else {
    context.note(fmt::format("'{}' runs again: {}", (context.directory / kept.directory).string(),
                             problem.empty() ? "it is not the run that was measured" : problem));
  }
}

// Removes the files of a run that begins anew.
void remove_run(const BenchPlan& plan, const BenchRun& run, const fs::path& directory) {
  const fs::path path = directory / plan.cases[run.case_index].directory / fmt::format("seed-{}", run.seed);
  for (const char* ending : {"", ".log", ".mllog", ".trace.json"}) fs::remove_all(path.string() + ending);
}

void take_over(const ordered_json& then, const BenchContext& context, BenchResult& result) {
  check_same_plan(then, result, context.directory);
  result.resumptions.clear();
  for (const ordered_json& earlier : then.at("resumptions")) {
    result.resumptions.push_back({earlier.at("started"), earlier.at("runs_kept"), earlier.at("changed")});
  }
  BenchResumption& now = result.resumptions.emplace_back();
  now.started = std::exchange(result.started, then.at("started"));
  now.changed = changed_fields(then.at("machine"), result.machine);
  result.command = then.at("command");
  result.machine = then.at("machine");
  result.load_at_begin = then.at("load_average").at("begin").get<LoadAverage>();
  result.load_at_end = then.at("load_average").at("end").get<LoadAverage>();
  for (BenchRun& run : result.runs) {
    for (const ordered_json& earlier : then.at("cases").at(run.case_index).at("runs")) {
      if (earlier.at("seed") == run.seed) {
        keep_if_measured(earlier, context, result.plan.target.has_value(), run);
      }
    }
    if (run.is_measured()) ++now.runs_kept;
  }
  if (now.runs_kept == static_cast<int>(result.runs.size())) result.resumptions.pop_back();  // nothing is left to run
}

}  // namespace

bool holds_bench(const fs::path& directory) {
  if (fs::exists(directory / kBenchJson)) return true;
  for (const fs::directory_entry& entry : fs::directory_iterator(directory)) {
    if (entry.path().filename() == kBenchLock) continue;  // left by a bench that was killed before its first run
    fail(ErrorKind::kUsage, "'{}' holds no bench to go on with ({} is missing); choose another directory with --output",
         directory.string(), kBenchJson);
  }
  return false;
}

BenchLock::BenchLock(const fs::path& directory) {
  const fs::path path = directory / kBenchLock;
  file_ = open(path.c_str(), O_RDWR | O_CREAT | O_NOFOLLOW, 0666);  // inherited by the runs
  if (file_ < 0) fail_directory("lock", directory, errno);
  if (flock(file_, LOCK_EX | LOCK_NB) == 0) return;
  const int error = errno;
  close(file_);
  if (error != EWOULDBLOCK) fail_directory("lock", directory, error);
  fail(ErrorKind::kUsage,
       "another bench works in '{}', or a run that it has begun; wait for its end, or choose another "
       "directory with --output",
       directory.string());
}

BenchLock::~BenchLock() { close(file_); }

BenchResult resume_bench(const BenchPlan& plan, const BenchContext& context) {
  BenchResult result = begin_bench(plan, context);
  try {
    take_over(read_bench_json(context.directory), context, result);
  } catch (const ordered_json::exception& error) {
    fail(ErrorKind::kData, "'{}' is damaged: {}; restore it, or begin anew in another directory",
         (context.directory / kBenchJson).string(), error.what());
  }
  for (const BenchRun& run : result.runs) {
    if (!run.is_measured()) remove_run(plan, run, context.directory);
  }
  return result;
}

}  // namespace arbalest::jobs
