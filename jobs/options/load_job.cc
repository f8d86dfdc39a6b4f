#include "jobs/options/load_job.h"

#include <cerrno>
#include <cstring>
#include <filesystem>
#include <fstream>
#include <set>
#include <string_view>
#include <system_error>

#include "dataflow/models/model_defaults.h"
#include "dataflow/models/zoo/zoo.h"
#include "engine/error.h"
#include "jobs/options/data/validation_reader.h"
#include "jobs/options/parameters/initialize_reader.h"
#include "jobs/options/readers/job_defaults.h"
#include "jobs/options/readers/job_reader.h"
#include "jobs/options/readers/value_checks.h"
#include "jobs/options/sparse/sparse_reader.h"
#include "jobs/options/text/issue_origin.h"
#include "jobs/options/text/issue_report.h"
#include "jobs/options/text/overrides.h"
#include "jobs/options/text/text_format.h"

namespace arbalest::jobs {

using engine::ErrorKind;
using engine::fail;

namespace {

constexpr std::size_t kMaxFileBytes = std::size_t{4} << 20;
constexpr std::string_view kByteOrderMark = "\xEF\xBB\xBF";  // some editors begin UTF-8 files with it
constexpr const char* kHeader = "# proto-file: arbalest/v1/job.proto\n# proto-message: arbalest.v1.Job\n\n";

std::string read_file(const std::string& path) {
  std::error_code unknown;  // ignored: opening the file then fails, too, and says why
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

// Sets defaults and reads the job; adds mistakes to `issues`.
JobOptions read_checked(v1::Job& job, const std::string& file, const RunShape& shape, dataflow::FieldIssues& issues) {
  check_values(job, issues);
  if (is_sparse(job)) {
    fill_sparse_defaults(job, file);
    return read_sparse_job(job, issues);
  }
  fill_defaults(job, file);
  return read_job(job, shape, issues);
}

void throw_if_any(const SyntaxReport& syntax, const SourceText& source) {
  if (syntax.issues.empty()) return;
  IssueReport report(source);
  for (const SyntaxIssue& issue : syntax.issues) report.add(issue.position, issue.message);
  report.add_unshown(syntax.unshown);
  throw report.to_error(syntax.stopped ? "Reading stops at the first mistake of this kind; there may be more behind it."
                                       : "");
}

void throw_if_any(const dataflow::FieldIssues& issues, const SourceText& source, const TextOutline& outline,
                  const Overrides& applied, IssueOrigin origin) {
  IssueReport report(source);
  std::size_t in_file = 0;
  for (const OverrideIssue& issue : applied.issues()) report.add_setting(issue.setting, issue.message);
  for (const dataflow::FieldIssue& issue : issues.all()) {
    if (applied.missed(issue.path)) continue;
    if (const std::string setting = origin.setting_for(issue); !setting.empty()) {
      report.add_setting(setting, issue.message);
    } else if (++in_file > kMaxShownIssues) {
      report.add_unshown(1);  // a search for each of them would take long
    } else if (const auto position = outline.find(issue.path); position.has_value()) {
      report.add(*position, issue.message);
    } else {
      report.add_missing(issue.message);
    }
  }
  if (!report.empty()) throw report.to_error();
}

// Returns a function that makes an error about the value at `path` later, when the data is read.
std::function<engine::Error(std::string)> error_at(const std::string& path, const SourceText& source,
                                                   const TextOutline& outline, const Overrides& applied) {
  const std::string* setting = applied.origin(path);
  return [source, setting = setting == nullptr ? "" : *setting, position = outline.find(path)](std::string message) {
    IssueReport report(source);
    if (!setting.empty()) {
      report.add_setting(setting, std::move(message));
    } else if (position.has_value()) {
      report.add(*position, std::move(message));
    } else {
      report.add_missing(std::move(message));
    }
    return report.to_error();
  };
}

}  // namespace

SourceText read_job_file(const std::string& path) { return {path, read_file(path)}; }

JobOptions load_job(const std::string& path, std::span<const std::string> overrides) {
  return parse_job(read_job_file(path), overrides);
}

JobOptions parse_job(const SourceText& source, std::span<const std::string> overrides, const RunShape& shape) {
  v1::Job written;
  const TextOutline outline(source, *v1::Job::descriptor());
  throw_if_any(parse_text(source, outline, written), source);
  v1::Job job = written;
  const Overrides applied(overrides, job);
  dataflow::FieldIssues issues;
  JobOptions options = read_checked(job, source.name(), shape, issues);
  const auto find_wrong = [&](std::span<const std::string> settings) {
    v1::Job changed = written;
    const Overrides some(settings, changed);
    dataflow::FieldIssues found;
    read_checked(changed, source.name(), shape, found);
    std::set<std::string> wrong;
    for (const dataflow::FieldIssue& issue : found.all()) wrong.insert(IssueOrigin::key_of(issue));
    return wrong;
  };
  throw_if_any(issues, source, outline, applied, IssueOrigin(overrides, applied, find_wrong));
  if (options.data.validation) options.data.validation->error = error_at(kFractionPath, source, outline, applied);
  if (options.initialize) options.initialize->error = error_at(kFromPath, source, outline, applied);
  options.resolved_text = kHeader + print_text(job);
  return options;
}

std::string expand_job(const SourceText& source, std::span<const std::string> overrides) {
  const JobOptions options = parse_job(source, overrides);
  v1::Job job;
  const TextOutline outline(source, *v1::Job::descriptor());
  parse_text(source, outline, job);
  const Overrides applied(overrides, job);
  job.set_name(options.name);  // keeps the name, whatever file this text is written to
  if (job.model().has_zoo()) {
    v1::Model& model = *job.mutable_model();
    dataflow::fill_defaults(model);
    dataflow::FieldIssues none;
    *model.mutable_layers() = dataflow::expand(model.zoo(), options.data.input, none);
    model.clear_zoo();
  }
  return kHeader + print_text(job, *v1::Model::descriptor()->FindFieldByName("layers"));
}

JobOptions with_learners(const JobOptions& job, int per_device, const std::string& why) {
  std::vector<std::string> settings{fmt::format("learners.per_device.fixed={}", per_device)};
  for (std::size_t i = 0; i < job.switches.size(); ++i) {
    const std::vector<int>& learners = job.switches[i].learners_per_device;
    if (learners.empty() || learners.front() <= per_device) continue;
    settings.push_back(fmt::format("synchronization.switch[{}].learners={}", i, per_device));
  }
  JobOptions changed = parse_job(SourceText(job.name, job.resolved_text), settings);
  changed.learners_are_given = job.learners_are_given;
  changed.data.validation = job.data.validation;  // its errors point into the user's text, like those of `initialize`
  changed.initialize = job.initialize;
  changed.warnings.insert(changed.warnings.begin(), why);
  return changed;
}

std::string with_schedule(const std::string& job_text, std::span<const LearnerStep> schedule) {
  v1::Job job;
  const SourceText source("job", job_text);
  throw_if_any(parse_text(source, TextOutline(source, *v1::Job::descriptor()), job), source);
  v1::Learners::Schedule& message = *job.mutable_learners()->mutable_per_device()->mutable_schedule();
  for (const LearnerStep& step : schedule) {
    v1::Learners::Schedule::Step& added = *message.add_step();
    added.set_at_batch(static_cast<std::int64_t>(step.at_batch));
    for (const int learners : step.per_device) added.add_learners(learners);
  }
  return kHeader + print_text(job);
}

}  // namespace arbalest::jobs
