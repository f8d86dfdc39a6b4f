// metrics.jsonl: the events of a run, one JSON object per line, each with its `event`.
#pragma once

#include <cstdint>
#include <filesystem>
#include <utility>

#include <nlohmann/json.hpp>

namespace arbalest::jobs {

// A line has reached the operating system when append() returns, so a reader can follow the file during the run. All
// functions throw as fail_write does (jobs/export/atomic_file.h).
class MetricsLog {
 public:
  // `file`: descriptor open for appending; the log closes it. `path`: for messages.
  MetricsLog(std::filesystem::path path, int file) : path_(std::move(path)), file_(file) {}
  ~MetricsLog();
  MetricsLog(const MetricsLog&) = delete;
  MetricsLog& operator=(const MetricsLog&) = delete;

  // Writes {"event": <event>, followed by the fields of `row`}.
  void append(const char* event, const nlohmann::ordered_json& row);
  // Length of the file.
  std::uint64_t bytes() const;
  // Cuts the file to its first `bytes`. A shorter file, which a power loss can leave, gets an end of line.
  void cut(std::uint64_t bytes);
  // Waits until all lines are on disk.
  void sync();

 private:
  std::filesystem::path path_;
  int file_;
};

}  // namespace arbalest::jobs
