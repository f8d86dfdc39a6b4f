#include "jobs/report/run_directory.h"

#include <fcntl.h>
#include <sys/file.h>
#include <unistd.h>

#include <cerrno>
#include <fstream>
#include <system_error>

#include "engine/error.h"
#include "jobs/export/atomic_file.h"
#include "jobs/messages/failure.h"
#include "jobs/options/load_job.h"
#include "jobs/report/json.h"
#include "jobs/report/trace.h"

namespace arbalest::jobs {

using engine::ErrorKind;
namespace fs = std::filesystem;

namespace {

[[noreturn]] void fail_used(const fs::path& directory, const char* file) {
  engine::fail(ErrorKind::kUsage, "'{}' holds a run already ({}); choose another directory with --output",
               directory.string(), file);
}

void check_holds_no_run(const fs::path& directory) {
  for (const char* file : {kJobFile, kModelFile, kMetricsFile, kSummaryFile}) {
    std::error_code error;
    if (fs::exists(fs::symlink_status(directory / file, error))) fail_used(directory, file);
  }
}

[[noreturn]] void fail_summary(const fs::path& path, const char* problem) {
  engine::fail(ErrorKind::kData, "'{}' is damaged: {}; restore it, or train again", path.string(), problem);
}

// Creates metrics.jsonl and opens it for appending. The process that creates it owns the directory.
int claim(const fs::path& directory) {
  const fs::path path = directory / kMetricsFile;
  const int file = open(path.c_str(), O_WRONLY | O_CREAT | O_EXCL | O_APPEND | O_CLOEXEC, 0666);
  if (file < 0 && errno == EEXIST) fail_used(directory, kMetricsFile);
  if (file < 0) fail_directory("write to", directory, errno);
  // Shows other processes that the run is alive (is_running). A file system without locks only lacks that answer.
  static_cast<void>(flock(file, LOCK_EX | LOCK_NB));
  return file;
}

}  // namespace

RunDirectory::RunDirectory(const fs::path& path, const std::string& job_name) : directory_(path, job_name) {
  check_holds_no_run(directory_.path());
  metrics_ = std::make_unique<MetricsLog>(directory_.path() / kMetricsFile, claim(directory_.path()));
}

RunDirectory::~RunDirectory() {
  if (!begun_) unlink((path() / kMetricsFile).c_str());
}

void RunDirectory::on_start(const RunStart& start) {
  begun_ = true;
  job_text_ = start.job_text;
  is_tuned_ = start.is_tuned;
  learners_ = {{0, start.learners_per_device}};
  write_file(path() / kJobFile, start.job_text);
  if (is_tuned_) write_replay();
  metrics_->append("start", to_json(start));
}

void RunDirectory::on_progress(const RunProgress&) {}

void RunDirectory::on_epoch(const EpochRow& row) {
  metrics_->append("epoch", to_json(row));
  if (trace_ == nullptr || !trace_->shares()) return;
  nlohmann::ordered_json found = {{"epoch", row.epoch}};
  found.update(to_json(*trace_->shares()));
  metrics_->append("trace", found);
}

void RunDirectory::on_resize(const ResizeRow& row) {
  metrics_->append("resize", to_json(row));
  if (row.to == row.from) return;
  if (learners_.back().at_batch == row.batch) learners_.pop_back();
  learners_.push_back({row.batch, row.to});
  if (is_tuned_) write_replay();
}

void RunDirectory::on_switch(const SwitchRow& row) { metrics_->append("switch", to_json(row)); }

void RunDirectory::write_replay() const { write_file(path() / kReplayFile, with_schedule(job_text_, learners_)); }

void RunDirectory::on_finish(const RunSummary& summary) {
  if (!begun_) return;
  metrics_->append("finish", to_json(summary));
  metrics_->sync();
  write_file(path() / kSummaryFile, to_json(summary).dump(2) + "\n");
}

std::string saved_data_root(const fs::path& directory) {
  std::ifstream file(directory / kMetricsFile);
  std::string line;
  std::getline(file, line);  // the start of the run
  const auto start = nlohmann::json::parse(line, nullptr, /*allow_exceptions=*/false);
  const bool is_told = start.is_object() && start.contains("data_root") && start["data_root"].is_string();
  return is_told ? start["data_root"].get<std::string>() : "";
}

bool is_running(const fs::path& directory) {
  const int file = open((directory / kMetricsFile).c_str(), O_RDONLY | O_CLOEXEC);
  if (file < 0) return false;
  const bool is_locked = flock(file, LOCK_SH | LOCK_NB) != 0 && errno == EWOULDBLOCK;
  close(file);
  return is_locked;
}

std::optional<SavedSummary> read_summary(const fs::path& directory) {
  const fs::path path = directory / kSummaryFile;
  std::error_code error;
  const fs::file_status status = fs::status(path, error);
  if (!fs::exists(status)) return std::nullopt;
  std::ifstream file;
  if (fs::is_regular_file(status)) file.open(path);
  if (!file.is_open()) fail_summary(path, "it cannot be read");
  const auto summary = nlohmann::json::parse(file, nullptr, /*allow_exceptions=*/false);
  if (!summary.is_object() || !summary.contains("model_sha256") || !summary["model_sha256"].is_string()) {
    fail_summary(path, "it has no model_sha256");
  }
  const auto number = [&](const char* field) {
    const auto value = summary.find(field);
    const bool is_there = value != summary.end() && value->is_number();
    return is_there ? std::optional(value->get<double>()) : std::nullopt;
  };
  return SavedSummary{.model_sha256 = summary["model_sha256"],
                      .test_accuracy = number("test_accuracy"),
                      .test_rmse = number("test_rmse"),
                      .validation_accuracy = number("validation_accuracy"),
                      .validation_rmse = number("validation_rmse")};
}

}  // namespace arbalest::jobs
