// Everything that is wrong with a job, as text.
#pragma once

#include <cstddef>
#include <string>
#include <string_view>
#include <vector>

#include "engine/error.h"
#include "jobs/options/source_text.h"

namespace arbalest::jobs {

class IssueReport {
 public:
  explicit IssueReport(const SourceText& source) : source_(source) {}

  // In the file, at `position`.
  void add(Position position, std::string message);
  // In the file, which does not have what is wrong.
  void add_missing(std::string message);
  void add_setting(std::string setting, std::string message);
  // `count` more in the file.
  void add_unshown(std::size_t count) { unshown_ += count; }

  bool empty() const noexcept { return entries_.empty(); }

  // Settings first, each as "--set path=value: error: message", then those in the file, in its order, each as
  // "file:line:column: error: message" and the line itself; of many, only the first. `note`: a last line, or "".
  // ErrorKind::kUsage if all come from settings, else ErrorKind::kInvalidJob.
  engine::Error to_error(std::string_view note = "") const;

 private:
  enum class Origin { kSetting, kNowhere, kFile };  // in the order of the text
  struct Entry {
    Origin origin = Origin::kFile;
    Position position;
    std::string setting;
    std::string message;
  };

  std::string describe(const Entry& entry) const;

  const SourceText& source_;
  std::vector<Entry> entries_;
  std::size_t unshown_ = 0;
};

}  // namespace arbalest::jobs
