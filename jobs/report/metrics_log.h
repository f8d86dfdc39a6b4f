// metrics.jsonl: what happened in a run, one JSON object a line, each with its `event`.
#pragma once

#include <filesystem>
#include <utility>

#include <nlohmann/json.hpp>

namespace arbalest::jobs {

// A line has reached the system when append returns, so that a reader may follow the file while the run goes on.
// All throw as fail_write does (jobs/export/atomic_file.h).
class MetricsLog {
 public:
  // `file`: open for appending, and closed by this; `path` is for messages.
  MetricsLog(std::filesystem::path path, int file) : path_(std::move(path)), file_(file) {}
  ~MetricsLog();
  MetricsLog(const MetricsLog&) = delete;
  MetricsLog& operator=(const MetricsLog&) = delete;

  // {"event": <event>, and the fields of `row`}
  void append(const char* event, const nlohmann::ordered_json& row);
  // Waits until all lines are on disk.
  void sync();

 private:
  std::filesystem::path path_;
  int file_;
};

}  // namespace arbalest::jobs
