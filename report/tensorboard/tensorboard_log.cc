#include "report/tensorboard/tensorboard_log.h"

#include <algorithm>
#include <cerrno>
#include <cstring>
#include <fstream>
#include <utility>

#include "engine/base/error.h"
#include "report/tensorboard/event_file.h"
#include "report/tensorboard/run_events.h"
#include "saved_model/run_files.h"

namespace arbalest::jobs {

namespace fs = std::filesystem;

TensorBoardLog::TensorBoardLog(fs::path run_directory) : run_directory_(std::move(run_directory)) {}
TensorBoardLog::~TensorBoardLog() = default;

void TensorBoardLog::begin(const std::string& job_text) {
  job_text_ = job_text;
  rebuild();
}

void TensorBoardLog::add(const std::string& event, const nlohmann::ordered_json& row) {
  if (!is_whole_ || !is_in_place()) return rebuild();
  is_whole_ = false;
  write(event, row);
  is_whole_ = true;
}

void TensorBoardLog::rebuild() {
  is_whole_ = false;
  files_.clear();
  events_ = std::make_unique<RunEvents>(job_text_);
  const fs::path path = run_directory_ / kMetricsFile;
  std::ifstream log(path);
  if (!log) engine::fail(engine::ErrorKind::kInternal, "cannot read '{}': {}", path.string(), std::strerror(errno));
  for (std::string line; std::getline(log, line);) {
    const auto row = nlohmann::ordered_json::parse(line, nullptr, /*allow_exceptions=*/false);
    if (row.is_object() && row.contains("event") && row["event"].is_string()) write(row["event"], row);
  }
  for (const Curve curve : kCurves) {
    if (!files_.contains(curve)) retire_event_files(run_directory_ / kTensorBoardFolder / folder_of(curve));
  }
  is_whole_ = true;
}

bool TensorBoardLog::is_in_place() const {
  return std::ranges::all_of(files_, [](const auto& file) { return file.second->is_in_place(); });
}

void TensorBoardLog::write(const std::string& event, const nlohmann::ordered_json& row) {
  for (const CurveEvent& made : events_->of(event, row)) {
    if (made.event.has_session_log() && !files_.contains(made.curve)) continue;  // there is nothing to forget
    std::unique_ptr<EventFile>& file = files_[made.curve];
    if (!file) {
      file = std::make_unique<EventFile>(run_directory_ / kTensorBoardFolder / folder_of(made.curve),
                                         made.event.wall_time(), made.event.step());
    }
    file->append(made.event);
  }
}

}  // namespace arbalest::jobs
