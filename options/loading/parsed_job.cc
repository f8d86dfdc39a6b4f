#include "options/loading/parsed_job.h"

#include <cstddef>
#include <functional>
#include <set>
#include <utility>

#include <fmt/format.h>

#include "messages/text_encoding.h"
#include "options/data/validation_reader.h"
#include "options/loading/job_defaults.h"
#include "options/loading/job_reader.h"
#include "options/parameters/initialize_reader.h"
#include "options/readers/epoch_defaults.h"
#include "options/readers/value_checks.h"
#include "options/sparse/sparse_reader.h"
#include "options/synchronization/step_growth_check.h"
#include "options/synchronization/synchronization_warnings.h"
#include "options/text/issue_origin.h"
#include "options/text/issue_report.h"
#include "options/text/octal_numbers.h"
#include "options/text/overrides.h"
#include "options/text/text_format.h"

namespace arbalest::jobs {

namespace {

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
  throw report.to_error(syntax.stopped ? "Reading stops at the first error of this kind; there may be more after it."
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

ParsedJob::ParsedJob(SourceText source) : source_(std::move(source)), outline_(source_, *v1::Job::descriptor()) {
  throw_if_any(parse_text(source_, outline_, written_), source_);
}

void ParsedJob::replace_model(const v1::Model& model) {
  *written_.mutable_model() = model;
  written_.clear_initialize();
}

JobOptions ParsedJob::read(std::span<const std::string> settings, const RunShape& shape) const {
  v1::Job job = written_;
  const Overrides applied(settings, job);
  dataflow::FieldIssues issues;
  std::vector<std::string> following = fields_following_max_epochs(job);
  JobOptions options = read_checked(job, source_.name(), shape, issues);
  options.following_max_epochs = std::move(following);
  const auto find_wrong = [&](std::span<const std::string> some) {
    v1::Job changed = written_;
    const Overrides applied_some(some, changed);
    dataflow::FieldIssues found;
    read_checked(changed, source_.name(), shape, found);
    std::set<std::string> wrong;
    for (const dataflow::FieldIssue& issue : found.all()) wrong.insert(IssueOrigin::key_of(issue));
    return wrong;
  };
  throw_if_any(issues, source_, outline_, applied, IssueOrigin(settings, applied, find_wrong));
  options.growth_error = growth_error(settings, options);
  options.data.class_names_error = jobs::error_at("data.class_names", source_, outline_, applied);
  if (options.data.validation) {
    options.data.validation->error = jobs::error_at(kFractionPath, source_, outline_, applied);
  }
  if (options.initialize) options.initialize->error = jobs::error_at(kFromPath, source_, outline_, applied);
  options.resolved_text = kJobHeader + print_text(job);
  return options;
}

std::vector<dataflow::FieldIssue> ParsedJob::warnings(std::span<const std::string> settings,
                                                      const JobOptions& options) const {
  if (options.sparse) return {};
  v1::Job job = written_;
  const Overrides applied(settings, job);
  return synchronization_warnings(job.synchronization(), options);
}

std::vector<std::string> ParsedJob::number_warnings() const {
  std::vector<std::string> warnings;
  for (const OctalNumber& number : octal_numbers(source_, outline_)) {
    warnings.push_back(
        fmt::format("{}:{}:{}: {}", source_.name(), number.position.line, number.position.column, number.message));
  }
  return warnings;
}

void ParsedJob::warn(std::span<const std::string> settings, JobOptions& options) const {
  for (std::string& warning : number_warnings()) options.warnings.push_back(std::move(warning));
  v1::Job job = written_;
  const Overrides applied(settings, job);
  for (const dataflow::FieldIssue& warning : warnings(settings, options)) {
    std::string place;
    if (const std::string* setting = applied.origin(warning.path)) {
      place = fmt::format("--set {}: ", printable(shortened(*setting)));
    } else if (const auto position = outline_.find(warning.path)) {
      place = fmt::format("{}:{}:{}: ", source_.name(), position->line, position->column);
    }
    options.warnings.push_back(fmt::format("{}{}: {}", place, warning.path, warning.message));
  }
}

std::optional<engine::Error> ParsedJob::growth_error(std::span<const std::string> settings,
                                                     const JobOptions& options) const {
  dataflow::FieldIssues growth;
  check_step_growth(options, growth);
  if (growth.empty()) return std::nullopt;
  v1::Job job = written_;
  const Overrides applied(settings, job);
  IssueReport report(source_);
  for (const dataflow::FieldIssue& issue : growth.all()) {
    if (const std::string* setting = applied.origin(issue.path)) {
      report.add_setting(*setting, issue.message);
    } else if (const auto position = outline_.find(issue.path)) {
      report.add(*position, issue.message);
    } else {
      report.add_missing(issue.message);
    }
  }
  return report.to_error();
}

engine::Error ParsedJob::error_at(const std::string& path, std::span<const std::string> settings,
                                  std::string message) const {
  v1::Job job = written_;
  const Overrides applied(settings, job);
  return jobs::error_at(path, source_, outline_, applied)(std::move(message));
}

}  // namespace arbalest::jobs
