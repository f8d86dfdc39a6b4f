#include "jobs/options/load_job.h"

#include <algorithm>
#include <cerrno>
#include <cstring>
#include <filesystem>
#include <fstream>
#include <string_view>
#include <system_error>
#include <utility>
#include <vector>

#include "engine/error.h"
#include "jobs/options/job_defaults.h"
#include "jobs/options/job_reader.h"
#include "jobs/options/overrides.h"
#include "jobs/options/text_encoding.h"
#include "jobs/options/text_format.h"
#include "jobs/options/value_checks.h"

namespace arbalest::jobs {

using engine::Error;
using engine::ErrorKind;
using engine::fail;

namespace {

constexpr std::size_t kMaxFileBytes = std::size_t{4} << 20;
constexpr std::string_view kByteOrderMark = "\xEF\xBB\xBF";  // some editors begin UTF-8 with it
constexpr const char* kHeader = "# proto-file: arbalest/v1/job.proto\n# proto-message: arbalest.v1.Job\n\n";

std::string read_file(const std::string& path) {
  std::error_code unknown;  // then opening it fails as well, and says why
  if (std::filesystem::is_directory(path, unknown)) {
    fail(ErrorKind::kInvalidJob, "{}: this is a directory; name a job file (*.txtpb)", path);
  }
  std::ifstream file(path, std::ios::binary);
  if (!file) fail(ErrorKind::kInvalidJob, "{}: the job file cannot be opened: {}", path, std::strerror(errno));
  std::string text(kMaxFileBytes + 1, '\0');
  file.read(text.data(), static_cast<std::streamsize>(text.size()));
  if (file.bad()) fail(ErrorKind::kInvalidJob, "{}: the job file cannot be read: {}", path, std::strerror(errno));
  text.resize(static_cast<std::size_t>(file.gcount()));
  if (text.find('\0') != std::string::npos) fail(ErrorKind::kInvalidJob, "{}: binary data, not a job file", path);
  if (text.size() > kMaxFileBytes) fail(ErrorKind::kInvalidJob, "{}: larger than 4 MiB, so no job file", path);
  if (text.starts_with(kByteOrderMark)) text.erase(0, kByteOrderMark.size());
  return text;
}

// One thing that is wrong, ready to be shown.
struct Entry {
  Position position;  // {0, 0} if it is not in the file
  std::string text;
};

// In the order of the file, settings first. `count`: how many there are, shown or not.
std::string report(std::vector<Entry> entries, std::size_t count) {
  std::ranges::stable_sort(entries, {},
                           [](const Entry& entry) { return std::pair(entry.position.line, entry.position.column); });
  std::string text;
  for (const Entry& entry : entries) text += (text.empty() ? "" : "\n") + entry.text;
  if (count > 1) text += fmt::format("\n{} errors", count);
  if (count > entries.size()) text += fmt::format(", of which {} are shown", entries.size());
  return text;
}

void throw_if_any(const std::vector<SyntaxIssue>& issues, const SourceText& source) {
  if (issues.empty()) return;
  std::vector<Entry> entries;
  for (const SyntaxIssue& issue : issues) {
    entries.push_back({issue.position, source.describe(issue.position, issue.message)});
  }
  std::string text = report(std::move(entries), issues.size());
  if (issues.back().is_last) text += "\nReading stops at the first mistake of this kind; there may be more behind it.";
  throw Error(ErrorKind::kInvalidJob, text);
}

void throw_if_any(const dataflow::FieldIssues& issues, const SourceText& source, const FieldLocations& locations,
                  const Overrides& overrides) {
  if (issues.empty()) return;
  std::vector<Entry> entries;
  ErrorKind kind = ErrorKind::kUsage;
  for (const dataflow::FieldIssue& issue : issues.all()) {
    const std::string* setting = overrides.origin(issue.path);
    if (setting == nullptr) kind = ErrorKind::kInvalidJob;
    if (entries.size() == kMaxShownIssues) continue;
    if (setting != nullptr) {
      entries.push_back(
          {{0, 0}, fmt::format("--set {}: {}", printable(shortened(*setting)), printable(issue.message))});
      continue;
    }
    const auto position = locations.find(issue.path, *v1::Job::descriptor(), source);
    entries.push_back({position.value_or(Position{}),
                       position ? source.describe(*position, issue.message)
                                : fmt::format("{}:1:1: error: {}", source.name(), printable(issue.message))});
  }
  throw Error(kind, report(std::move(entries), issues.all().size()));
}

}  // namespace

JobOptions load_job(const std::string& path, std::span<const std::string> overrides) {
  return parse_job(SourceText(path, read_file(path)), overrides);
}

JobOptions parse_job(const SourceText& source, std::span<const std::string> overrides) {
  v1::Job job;
  FieldLocations locations;
  throw_if_any(parse_text(source, job, locations), source);
  const Overrides applied(overrides, job);
  dataflow::FieldIssues issues;
  check_values(job, issues);
  fill_defaults(job, source.name());
  JobOptions options = read_job(job, issues);
  throw_if_any(issues, source, locations, applied);
  options.resolved_text = kHeader + print_text(job);
  return options;
}

}  // namespace arbalest::jobs
