// metrics.jsonl: the events of a run, one JSON object per line, each with its `event`.
#pragma once

#include <cstdint>
#include <filesystem>
#include <string>
#include <string_view>
#include <utility>

#include <nlohmann/json.hpp>

#include "engine/base/error.h"
#include "saved_model/file_identity.h"

namespace arbalest::jobs {

// The directory of the run is gone, so nothing of the run can be saved. Of kind kInternal.
class RunGone final : public engine::Error {
 public:
  explicit RunGone(const std::string& what) : Error(engine::ErrorKind::kInternal, what) {}
};

// A line has reached the operating system when append() returns, so a reader can follow the file during the run. The
// file has whole lines only: what cannot be written waits in memory. All functions but bytes() and waiting_lines()
// throw as fail_write does (saved_model/atomic_file.h). If the file is deleted, but not its directory, the log writes
// it again, with all its lines. If another file has its name, lines wait until that file is gone: an error of kind
// kOutOfMemory.
class MetricsLog {
 public:
  // `file`: descriptor open for reading and appending; the log closes it. `path`: of the file.
  MetricsLog(std::filesystem::path path, int file);
  ~MetricsLog();
  MetricsLog(const MetricsLog&) = delete;
  MetricsLog& operator=(const MetricsLog&) = delete;

  // Writes the waiting lines, then {"event": <event>, followed by the fields of `row`}. On an error all of them wait.
  // Throws RunGone if the directory of the file is gone.
  void append(const char* event, const nlohmann::ordered_json& row);
  // Writes the waiting lines and waits until all lines are on disk. Throws as append() does. Once this has failed,
  // nobody knows what is on disk, and is_whole() stays false.
  void sync();
  bool is_whole() const noexcept { return waiting_lines_ == 0 && !sync_failed_; }
  // The number of lines that could not be written yet.
  std::size_t waiting_lines() const noexcept { return waiting_lines_; }
  // Whether the file still has its name.
  bool is_in_place() const;
  // Whether the file was deleted and written again since the last call.
  bool take_restored() { return std::exchange(restored_, false); }
  // Length of the file, with the waiting lines.
  std::uint64_t bytes() const;
  // cut() returns what it has left and moved away.
  struct Cut {
    std::uint64_t bytes = 0;          // the length that is left; a power loss can leave less than was asked for
    std::uint64_t damaged_bytes = 0;  // of text that is no line of a log, now in <path>.damaged
  };
  // Cuts the file to the whole lines in its first `bytes`. Text there that is no JSON object is appended to
  // <path>.damaged, and a line {"event":"damaged"}, or {} if that is too long, takes its place with the same length: so
  // all other lines stay where checkpoints say that they are. No line may wait.
  Cut cut(std::uint64_t bytes);

 private:
  std::uint64_t file_bytes() const;
  // Looks whether the file and its directory still have their names, and writes a deleted file again.
  void check_place();
  void restore();
  void write_waiting();
  // Returns the first `end` bytes of the file, or all.
  std::string text_before(std::uint64_t end) const;
  void write_damaged(const std::string& text) const;
  void overwrite(std::uint64_t begin, std::string_view text) const;

  std::filesystem::path path_;
  int file_;
  FileIdentity directory_;  // of the file
  bool restored_ = false;
  std::string waiting_;
  std::size_t waiting_lines_ = 0;
  bool sync_failed_ = false;
};

}  // namespace arbalest::jobs
