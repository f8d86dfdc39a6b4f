// Collects the mistakes in a job and turns them into an error message.
#pragma once

#include <cstddef>
#include <string>
#include <string_view>
#include <vector>

#include "engine/base/error.h"
#include "options/text/source_text.h"

namespace arbalest::jobs {

class IssueReport {
 public:
  explicit IssueReport(const SourceText& source) : source_(source) {}

  // Adds a mistake in the file, at `position`.
  void add(Position position, std::string message);
  // Adds a mistake about something that the file lacks.
  void add_missing(std::string message);
  void add_setting(std::string setting, std::string message);
  // Counts `count` further mistakes in the file, which are not shown.
  void add_unshown(std::size_t count) { unshown_ += count; }

  bool empty() const noexcept { return entries_.empty(); }

  // Turns the report into an error. Mistakes in settings come first, as "--set path=value: error: message". Those in
  // the file follow in its order, as "file:line:column: error: message" and the line itself; if there are many, only
  // the first are shown. `note`: a last line, or "". The kind is ErrorKind::kUsage if all mistakes come from settings,
  // else ErrorKind::kInvalidJob.
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
