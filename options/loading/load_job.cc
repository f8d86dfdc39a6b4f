#include "options/loading/load_job.h"

#include <cerrno>
#include <cstring>
#include <filesystem>
#include <fstream>
#include <string_view>
#include <system_error>
#include <utility>

#include <fmt/format.h>

#include "dataflow/models/model_reader.h"
#include "dataflow/models/zoo/zoo.h"
#include "engine/base/error.h"
#include "options/loading/job_reader.h"
#include "options/loading/parsed_job.h"
#include "options/readers/team_check.h"
#include "options/text/overrides.h"
#include "options/text/text_format.h"

namespace arbalest::jobs {

using engine::ErrorKind;
using engine::fail;

namespace {

constexpr std::size_t kMaxFileBytes = std::size_t{4} << 20;
constexpr std::string_view kByteOrderMark = "\xEF\xBB\xBF";  // some editors begin UTF-8 files with it

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

}  // namespace

SourceText read_job_file(const std::string& path) { return {path, read_file(path)}; }

JobOptions load_job(const std::string& path, std::span<const std::string> overrides) {
  return load_job(read_job_file(path), overrides);
}

JobOptions load_job(const SourceText& source, std::span<const std::string> overrides) {
  const ParsedJob parsed(source);
  JobOptions options = parsed.read(overrides);
  require_stable_steps(options);
  parsed.warn(overrides, options);
  return options;
}

JobOptions parse_job(const SourceText& source, std::span<const std::string> overrides) {
  const ParsedJob parsed(source);
  JobOptions options = parsed.read(overrides);
  for (std::string& warning : parsed.number_warnings()) options.warnings.push_back(std::move(warning));
  for (const dataflow::FieldIssue& warning : parsed.warnings(overrides, options)) {
    options.warnings.push_back(fmt::format("{}: {}", warning.path, warning.message));
  }
  return options;
}

std::string expand_job(const SourceText& source, std::span<const std::string> overrides) {
  const ParsedJob parsed(source);
  const JobOptions options = parsed.read(overrides);
  v1::Job job = parsed.written();
  const Overrides applied(overrides, job);
  job.set_name(options.name);  // keeps the name, whatever file this text is written to
  if (job.model().has_zoo()) {
    v1::Model& model = *job.mutable_model();
    dataflow::fill_defaults(model);
    dataflow::FieldIssues none;
    *model.mutable_layers() = dataflow::expand(model.zoo(), options.data.input, none);
    model.clear_zoo();
  }
  return kJobHeader + print_text(job, *v1::Model::descriptor()->FindFieldByName("layers"));
}

JobOptions with_learners(const JobOptions& job, int per_device, const std::string& why) {
  std::vector<std::string> settings = learner_settings(job, per_device);
  for (const SynchronizationSwitch& each : job.switches) {
    const std::vector<int>& learners = each.learners_per_device;
    if (learners.empty() || learners.front() <= per_device) continue;
    settings.push_back(fmt::format("{}.learners={}", each.place, per_device));
  }
  JobOptions changed = parse_job(SourceText(job.name, job.resolved_text), settings);
  changed.learners_are_given = job.learners_are_given;
  changed.following_max_epochs = job.following_max_epochs;
  changed.data.validation = job.data.validation;  // its errors point into the user's text, like the other two
  changed.data.class_names_error = job.data.class_names_error;
  changed.initialize = job.initialize;
  // A run changes these after reading: the rules of a checkpoint's pixels, and nothing is saved without a directory.
  changed.data.pixels = job.data.pixels;
  changed.checkpoint = job.checkpoint;
  changed.training.divergence = job.training.divergence;
  changed.warnings = job.warnings;  // they name places in the user's text, and trials before the learners
  changed.warnings.insert(changed.warnings.begin(), why);
  return changed;
}

void set_precision(JobOptions& job, engine::Precision precision) {
  job.training.precision = precision;
  job.training.chooses_precision = false;
  v1::Job written = ParsedJob(SourceText(job.name, job.resolved_text)).written();
  written.mutable_training()->set_precision(to_proto(precision));
  job.resolved_text = kJobHeader + print_text(written);
}

std::string with_schedule(const std::string& job_text, std::span<const LearnerStep> schedule, int team) {
  v1::Job job = ParsedJob(SourceText("job", job_text)).written();
  if (team > 0) job.mutable_learners()->mutable_per_device()->set_team(team);
  v1::Learners::Schedule& message = *job.mutable_learners()->mutable_per_device()->mutable_schedule();
  for (const LearnerStep& step : schedule) {
    v1::Learners::Schedule::Step& added = *message.add_step();
    added.set_at_batch(static_cast<std::int64_t>(step.at_batch));
    for (const int learners : step.per_device) added.add_learners(learners);
  }
  return kJobHeader + print_text(job);
}

}  // namespace arbalest::jobs
