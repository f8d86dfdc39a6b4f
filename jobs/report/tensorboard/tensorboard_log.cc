#include "jobs/report/tensorboard/tensorboard_log.h"

#include <fstream>
#include <utility>

#include "jobs/report/run_files.h"

namespace arbalest::jobs {

namespace fs = std::filesystem;

TensorBoardLog::TensorBoardLog(fs::path run_directory) : run_directory_(std::move(run_directory)), events_("") {}
TensorBoardLog::~TensorBoardLog() = default;

void TensorBoardLog::begin(const std::string& job_text) {
  job_text_ = job_text;
  rebuild();
}

void TensorBoardLog::add(const std::string& event, const nlohmann::ordered_json& row) {
  if (!is_whole_) return rebuild();
  is_whole_ = false;
  write(event, row);
  is_whole_ = true;
}

void TensorBoardLog::rebuild() {
  is_whole_ = false;
  files_.clear();
  events_ = RunEvents(job_text_);
  for (const Curve curve : kCurves) remove_event_files(run_directory_ / kTensorBoardFolder / folder_of(curve));
  std::ifstream log(run_directory_ / kMetricsFile);
  for (std::string line; std::getline(log, line);) {
    const auto row = nlohmann::ordered_json::parse(line, nullptr, /*allow_exceptions=*/false);
    if (row.is_object() && row.contains("event") && row["event"].is_string()) write(row["event"], row);
  }
  is_whole_ = true;
}

void TensorBoardLog::write(const std::string& event, const nlohmann::ordered_json& row) {
  for (const CurveEvent& made : events_.of(event, row)) {
    std::unique_ptr<EventFile>& file = files_[made.curve];
    if (!file) {
      file = std::make_unique<EventFile>(run_directory_ / kTensorBoardFolder / folder_of(made.curve),
                                         made.event.wall_time(), made.event.step());
    }
    file->append(made.event);
  }
}

}  // namespace arbalest::jobs
