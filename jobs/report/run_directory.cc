#include "jobs/report/run_directory.h"

#include <fcntl.h>
#include <unistd.h>

#include <cerrno>
#include <cstring>
#include <ctime>
#include <fstream>
#include <system_error>

#include <fmt/chrono.h>

#include "engine/error.h"
#include "jobs/export/atomic_file.h"
#include "jobs/report/failure.h"
#include "jobs/report/json.h"

namespace arbalest::jobs {

using engine::ErrorKind;
namespace fs = std::filesystem;

namespace {

[[noreturn]] void fail_directory(const char* action, const fs::path& path, int error) {
  const bool is_full = kind_of_errno(error) == ErrorKind::kOutOfMemory;
  engine::fail(is_full ? ErrorKind::kOutOfMemory : ErrorKind::kUsage,
               "cannot {} the output directory '{}': {}; choose another with --output", action, path.string(),
               std::strerror(error));
}

// "runs/lenet-digits-20250131-142530"; the job reader lets no other characters into a name than a file may have.
fs::path fresh_path(const std::string& job) {
  const std::time_t now = std::time(nullptr);
  return fs::path("runs") / fmt::format("{}-{:%Y%m%d-%H%M%S}", job, fmt::localtime(now));
}

// True if it was made, false if it was there.
bool make_directory(const fs::path& path) {
  std::error_code error;
  const bool created = fs::create_directories(path, error);
  if (error) fail_directory("create", path, error.value());
  return created;
}

// Two runs of a job may begin in the same second: the later one gets a number.
fs::path make_fresh_directory(const fs::path& base) {
  fs::path path = base;
  for (int number = 2; !make_directory(path); ++number) path = fmt::format("{}-{}", base.string(), number);
  return path;
}

void check_writable(const fs::path& directory) {
  const fs::path probe = directory / fmt::format(".writable-{}", getpid());
  const int file = open(probe.c_str(), O_WRONLY | O_CREAT | O_CLOEXEC, 0666);
  if (file < 0) fail_directory("write to", directory, errno);
  close(file);
  unlink(probe.c_str());
}

void check_holds_no_run(const fs::path& directory) {
  for (const char* file : {kJobFile, kModelFile, kMetricsFile, kSummaryFile}) {
    std::error_code error;
    if (fs::exists(fs::symlink_status(directory / file, error))) {
      engine::fail(ErrorKind::kUsage, "'{}' holds a run already ({}); choose another directory with --output",
                   directory.string(), file);
    }
  }
}

}  // namespace

RunDirectory::RunDirectory(fs::path path, const JobOptions& job)
    : path_(std::move(path)), job_text_(job.resolved_text) {
  if (path_.empty()) {
    path_ = make_fresh_directory(fresh_path(job.name));
    created_ = true;
  } else {
    created_ = make_directory(path_);
  }
  check_holds_no_run(path_);
  check_writable(path_);
}

RunDirectory::~RunDirectory() {
  // Only if nothing is in it: a run that never began.
  if (created_) rmdir(path_.c_str());
}

void RunDirectory::on_start(const RunStart& start) {
  write_file(path_ / kJobFile, job_text_);
  metrics_ = std::make_unique<MetricsLog>(path_ / kMetricsFile);
  metrics_->append("start", to_json(start));
}

void RunDirectory::on_progress(const RunProgress&) {}

void RunDirectory::on_epoch(const EpochRow& row) { metrics_->append("epoch", to_json(row)); }

void RunDirectory::on_finish(const RunSummary& summary) {
  if (metrics_ == nullptr) return;
  metrics_->append("finish", to_json(summary));
  metrics_->sync();
  write_file(path_ / kSummaryFile, to_json(summary).dump(2) + "\n");
}

std::string saved_model_sha256(const fs::path& directory) {
  const fs::path path = directory / kSummaryFile;
  std::ifstream file(path);
  if (!file) return "";
  const auto summary = nlohmann::json::parse(file, nullptr, /*allow_exceptions=*/false);
  if (!summary.is_object() || !summary.contains("model_sha256") || !summary["model_sha256"].is_string()) {
    engine::fail(ErrorKind::kData, "'{}' is damaged: it has no model_sha256; restore it, or train again",
                 path.string());
  }
  return summary["model_sha256"];
}

}  // namespace arbalest::jobs
