#include "report/run_directory.h"

#include <unistd.h>

#include <cerrno>
#include <chrono>
#include <fstream>
#include <system_error>

#include "checkpoint/kernel_choices_text.h"
#include "checkpoint/saved_run.h"
#include "engine/base/error.h"
#include "messages/failure.h"
#include "messages/text.h"
#include "options/loading/load_job.h"
#include "report/json.h"
#include "report/run_origin_file.h"
#include "report/trace.h"
#include "saved_model/atomic_file.h"

namespace arbalest::jobs {

using engine::ErrorKind;
namespace fs = std::filesystem;

namespace {

[[noreturn]] void fail_summary(const fs::path& path, const char* problem) {
  engine::fail(ErrorKind::kData, "'{}' is damaged: {}; restore it, or train again", path.string(), problem);
}

// Adds the clock to a line, in seconds since 1970.
nlohmann::ordered_json with_time(nlohmann::ordered_json row) {
  row["time"] = std::chrono::duration<double>(std::chrono::system_clock::now().time_since_epoch()).count();
  return row;
}

}  // namespace

RunDirectory::RunDirectory(const fs::path& path, const std::string& job_name, ExistingRun existing,
                           const std::optional<fs::path>& origin)
    : directory_(path, job_name), tensorboard_(directory_.path()) {
  std::error_code error;
  existed_ = existing == ExistingRun::kContinue && fs::exists(directory_.path() / kMetricsFile, error);
  try {
    claim(existing, origin);
  } catch (...) {
    if (directory_.is_new()) unlink((directory_.path() / kOriginFile).c_str());
    throw;
  }
  remove_partial_files(directory_.path());
}

// Another process may take a directory that was there, so the log claims that first.
void RunDirectory::claim(ExistingRun existing, const std::optional<fs::path>& origin) {
  const bool is_first = origin && directory_.is_new();
  if (is_first) write_origin(path(), *origin);
  const int log = claim_run(path(), is_first ? ExistingRun::kContinue : existing);
  metrics_ = std::make_unique<MetricsLog>(path() / kMetricsFile, log);
  if (origin && !is_first) write_origin(path(), *origin);
}

void RunDirectory::continue_from(const SavedRun* saved, std::function<void()> at_start) {
  at_start_ = std::move(at_start);
  kept_bytes_ = saved == nullptr ? 0 : saved->run.metrics_bytes;
}

std::uint64_t RunDirectory::log_bytes() {
  attempt([this] { metrics_->sync(); });
  return metrics_->bytes();
}

void RunDirectory::attempt(const std::function<void()>& write) {
  try {
    write();
  } catch (const RunGone&) {
    throw;
  } catch (const engine::Error& error) {
    if (!failure_ && warn_) {
      warn_(fmt::format("{}; the run goes on, and what is missing will be written once that is possible again",
                        error.what()));
    }
    failure_ = error;
    return;
  }
  if (metrics_->take_restored() && warn_) {
    warn_(fmt::format("'{}' was deleted while its run was training; it was written again, and nothing is missing",
                      (path() / kMetricsFile).string()));
  }
  if (!failure_ || !metrics_->is_whole() || replay_waits_ || !tensorboard_.is_whole()) return;
  failure_.reset();
  if (warn_) warn_(fmt::format("'{}' can be written again, and nothing is missing", path().string()));
}

void RunDirectory::log(const char* event, const nlohmann::ordered_json& row) {
  attempt([&] { metrics_->append(event, row); });
  if (!metrics_->is_whole()) return tensorboard_.skip();
  attempt([&] { tensorboard_.add(event, row); });
}

RunDirectory::~RunDirectory() {
  if (begun_ || existed_ || !metrics_->is_in_place()) return;
  for (const char* file : {kJobFile, kReplayFile, kKernelsFile, kOriginFile, kMetricsFile})
    unlink((path() / file).c_str());
}

void RunDirectory::cut_log() {
  const std::string log = (path() / kMetricsFile).string();
  const MetricsLog::Cut cut = metrics_->cut(kept_bytes_);
  if (!warn_) return;
  if (cut.damaged_bytes > 0) {
    warn_(fmt::format("'{}' is damaged: the damaged part, {}, is now in '{}.damaged'; all other lines are kept", log,
                      counted(static_cast<std::int64_t>(cut.damaged_bytes), "byte"), log));
  }
  if (cut.bytes < kept_bytes_) {
    warn_(
        fmt::format("'{}' {}: it holds {} of the {} bytes up to the checkpoint, so events before it are missing; the "
                    "run itself lacks nothing",
                    log, existed_ ? "is damaged or was replaced" : "was deleted", cut.bytes, kept_bytes_));
  }
}

void RunDirectory::on_start(const RunStart& start) {
  // The model and the summary of an earlier process belong together, and stay until the run ends.
  // If the program is killed between the two, the newest checkpoint has its epochs in the log.
  if (at_start_) at_start_();
  cut_log();
  job_text_ = start.job_text;
  is_tuned_ = start.is_tuned;
  learners_ = start.learner_steps;
  team_ = start.team;
  writes_replay_ = is_tuned_ || (start.resumed && learners_.size() > 1);
  try {
    begin_files(start);
  } catch (const engine::Error& error) {
    if (error.kind() != ErrorKind::kInternal || dynamic_cast<const RunGone*>(&error) != nullptr) throw;
    engine::fail(ErrorKind::kUsage, "{}; choose another directory with --output", error.what());
  }
  begun_ = true;
  attempt([this] { tensorboard_.begin(job_text_); });
}

void RunDirectory::begin_files(const RunStart& start) {
  write_file(path() / kJobFile, start.job_text);
  if (writes_replay_) {
    write_replay();
  } else {
    remove(kReplayFile);
  }
  if (start.kernels.empty()) {
    remove(kKernelsFile);
  } else {
    write_file(path() / kKernelsFile, kernel_choices_text(start.kernels));
  }
  // A resumed run may be in a directory of its own.
  if (!start.resumed || metrics_->bytes() == 0) metrics_->append("start", with_time(to_json(start)));
  if (start.resumed) metrics_->append("resume", with_time(to_json(*start.resumed)));
}

void RunDirectory::on_progress(const RunProgress&) {}

void RunDirectory::on_epoch(const EpochRow& row) {
  log("epoch", to_json(row));
  if (trace_ == nullptr || !trace_->shares()) return;
  nlohmann::ordered_json found = {{"epoch", row.epoch}};
  found.update(to_json(*trace_->shares()));
  log("trace", found);
}

void RunDirectory::on_resize(const ResizeRow& row) {
  log("resize", to_json(row));
  if (!row.changes()) return;
  add_step(learners_, {row.batch, row.to});
  team_ = row.to_team;
  if (!writes_replay_) return;
  replay_waits_ = true;
  attempt([this] { write_replay(); });
}

void RunDirectory::on_switch(const SwitchRow& row) { log("switch", to_json(row)); }

void RunDirectory::on_rate_drop(const RateDropRow& row) { log("learning_rate_drop", to_json(row)); }

void RunDirectory::on_rollback(const RollbackRow& row) {
  log("rollback", to_json(row));
  std::erase_if(learners_, [&](const LearnerStep& step) { return step.at_batch > row.to_batch; });
  add_step(learners_, {row.to_batch, row.learners_per_device});
  if (!writes_replay_) return;
  replay_waits_ = true;
  attempt([this] { write_replay(); });
}

void RunDirectory::on_checkpoint(const CheckpointRow& row) { log("checkpoint", to_json(row)); }

void RunDirectory::on_warning(const std::string& text) { log("warning", {{"text", text}}); }

// No job file says how some runs have gone, such as one that was resumed on other devices: there is no replay then.
void RunDirectory::write_replay() {
  const std::string text = with_schedule(job_text_, learners_, team_);
  try {
    parse_job(SourceText(kReplayFile, text));
    write_file(path() / kReplayFile, text);
  } catch (const engine::Error& error) {
    if (error.kind() != ErrorKind::kInvalidJob) throw;
    remove(kReplayFile);
  }
  replay_waits_ = false;
}

// A file of an earlier process of the run tells another course.
void RunDirectory::remove(const char* file) const {
  const fs::path earlier = path() / file;
  if (unlink(earlier.c_str()) != 0 && errno != ENOENT) fail_write(earlier, errno);
}

// An earlier process of the run left a summary with the hash of its model.
void RunDirectory::on_save() {
  if (unlink((path() / kSummaryFile).c_str()) != 0 && errno != ENOENT) fail_directory("write to", path(), errno);
}

// A full disk may have room for one of the files.
void RunDirectory::on_finish(const RunSummary& summary) {
  if (!begun_) return;
  warn_ = {};  // what is missing from here on is an error
  log("finish", to_json(summary));
  attempt([this] { metrics_->sync(); });
  if (replay_waits_) attempt([this] { write_replay(); });
  const std::optional<engine::Error> failure = failure_;
  write_file(path() / kSummaryFile, to_json(summary).dump(2) + "\n");
  if (!failure) return;
  const auto lines = static_cast<std::int64_t>(metrics_->waiting_lines());
  const std::string missing = lines == 0 ? "" : fmt::format("; it lacks its last {}", counted(lines, "line"));
  throw engine::Error(failure->kind(), failure->what() + missing);
}

std::string saved_data_root(const fs::path& directory) {
  std::ifstream file(directory / kMetricsFile);
  std::string line;
  std::getline(file, line);  // the start of the run
  const auto start = nlohmann::json::parse(line, nullptr, /*allow_exceptions=*/false);
  const bool is_told = start.is_object() && start.contains("data_root") && start["data_root"].is_string();
  return is_told ? start["data_root"].get<std::string>() : "";
}

namespace {

// The numbers of the summary whose names begin with that of the set.
Scores scores_in(const nlohmann::json& summary, EvaluationSet set) {
  const std::string prefix = fmt::format("{}_", to_string(set));
  Scores scores;
  for (const auto& [name, value] : summary.items()) {
    if (name.starts_with(prefix) && value.is_number()) scores.set(name.substr(prefix.size()), value.get<double>());
  }
  return scores;
}

}  // namespace

std::optional<SavedSummary> read_summary(const fs::path& directory) {
  const fs::path path = directory / kSummaryFile;
  std::error_code error;
  const fs::file_status status = fs::status(path, error);
  if (!fs::exists(status)) return std::nullopt;
  std::ifstream file;
  if (fs::is_regular_file(status)) file.open(path);
  if (!file.is_open()) fail_summary(path, "it cannot be read");
  auto summary = nlohmann::json::parse(file, nullptr, /*allow_exceptions=*/false);
  if (!summary.is_object() || !summary.contains("model_sha256") || !summary["model_sha256"].is_string()) {
    fail_summary(path, "it has no model_sha256");
  }
  const auto number = [&](const char* field) {
    const auto value = summary.find(field);
    const bool is_there = value != summary.end() && value->is_number();
    return is_there ? std::optional(value->get<double>()) : std::nullopt;
  };
  std::optional<std::uint64_t> mini_batches;
  if (const auto value = summary.find("mini_batches"); value != summary.end() && value->is_number_unsigned()) {
    mini_batches = value->get<std::uint64_t>();
  }
  std::optional<std::uint64_t> best_batches;
  std::string best_sha256;
  if (const auto best = summary.find("best_model"); best != summary.end() && best->is_object()) {
    if (!(*best)["mini_batches"].is_number_unsigned() || !(*best)["sha256"].is_string()) {
      fail_summary(path, "its best_model lacks mini_batches or sha256");
    }
    best_batches = (*best)["mini_batches"].get<std::uint64_t>();
    best_sha256 = (*best)["sha256"];
  }
  const bool has_status = summary.contains("status") && summary["status"].is_string();
  return SavedSummary{.status = has_status ? summary["status"].get<std::string>() : "",
                      .epochs = static_cast<int>(number("epochs").value_or(0.0)),
                      .mini_batches = mini_batches,
                      .model_sha256 = summary["model_sha256"],
                      .best_batches = best_batches,
                      .best_sha256 = best_sha256,
                      .test = scores_in(summary, EvaluationSet::kTest),
                      .validation = scores_in(summary, EvaluationSet::kValidation)};
}

}  // namespace arbalest::jobs
