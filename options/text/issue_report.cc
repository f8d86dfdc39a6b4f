#include "options/text/issue_report.h"

#include <algorithm>
#include <tuple>
#include <utility>

#include <fmt/format.h>

#include "messages/text_encoding.h"
#include "options/text/text_format.h"

namespace arbalest::jobs {

void IssueReport::add(Position position, std::string message) {
  entries_.push_back({Origin::kFile, position, "", std::move(message)});
}

void IssueReport::add_missing(std::string message) {
  entries_.push_back({Origin::kNowhere, {}, "", std::move(message)});
}

void IssueReport::add_setting(std::string setting, std::string message) {
  entries_.push_back({Origin::kSetting, {}, std::move(setting), std::move(message)});
}

std::string IssueReport::describe(const Entry& entry) const {
  switch (entry.origin) {
    case Origin::kSetting:
      return fmt::format("--set {}: error: {}", printable(shortened(entry.setting)), printable(entry.message));
    case Origin::kNowhere: return fmt::format("{}:1:1: error: {}", source_.name(), printable(entry.message));
    case Origin::kFile: break;
  }
  return source_.describe(entry.position, entry.message);
}

engine::Error IssueReport::to_error(std::string_view note) const {
  std::vector<Entry> sorted = entries_;
  std::ranges::stable_sort(sorted, {}, [](const Entry& entry) { return std::tie(entry.origin, entry.position); });
  const std::size_t count = sorted.size() + unshown_;
  const bool is_usage =
      unshown_ == 0 && std::ranges::all_of(sorted, [](const Entry& entry) { return entry.origin == Origin::kSetting; });
  sorted.resize(std::min(sorted.size(), kMaxShownIssues));
  std::string text;
  for (const Entry& entry : sorted) text += (text.empty() ? "" : "\n") + describe(entry);
  if (count > 1) text += fmt::format("\n{} errors", count);
  if (count > sorted.size()) text += fmt::format(", of which {} are shown", sorted.size());
  if (!note.empty()) text += fmt::format("\n{}", note);
  return {is_usage ? engine::ErrorKind::kUsage : engine::ErrorKind::kInvalidJob, text};
}

}  // namespace arbalest::jobs
