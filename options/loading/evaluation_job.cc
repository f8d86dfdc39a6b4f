#include "options/loading/evaluation_job.h"

#include <algorithm>
#include <vector>

#include <fmt/ranges.h>

#include "engine/backends/cuda_devices.h"
#include "engine/base/error.h"
#include "options/loading/job_reader.h"
#include "options/loading/load_job.h"
#include "options/readers/learners_reader.h"
#include "options/sparse/sparse_reader.h"
#include "options/text/text_format.h"

namespace arbalest::jobs {

namespace {

// The job as written in the text; an empty job if the text is malformed.
v1::Job written_job(const SourceText& source) {
  v1::Job job;
  const SyntaxReport report = parse_text(source, TextOutline(source, *v1::Job::descriptor()), job);
  return report.issues.empty() ? job : v1::Job();
}

// Returns why the devices cannot be used on this machine; "" if they can.
std::string why_not_here(std::span<const std::string> names) {
  try {
    std::vector<engine::DeviceSpec> specs;
    for (const std::string& name : names) {
      specs.push_back(engine::parse_device(name));
      if (specs.back().is_cuda()) engine::find_cuda_device(specs.back());
    }
    engine::check_disjoint(specs);
  } catch (const engine::Error& error) {
    return error.what();
  }
  return "";
}

// Returns why a device does not support the run's precision; "" if all do.
std::string precision_problem_on(std::span<const std::string> names, const v1::Job& written) {
  for (const std::string& name : names) {
    const engine::Precision precision = from_proto(written.training().precision());
    std::string problem = engine::precision_problem(engine::parse_device(name), precision);
    if (!problem.empty()) return fmt::format("the run computed in {}, which '{}' does not", to_string(precision), name);
  }
  return "";
}

JobOptions on_devices(const SourceText& source, const v1::Job& written, const std::vector<std::string>& names,
                      bool in_float32) {
  // The scheme of synchronization does not matter, and must not forbid any number of learners.
  std::vector<std::string> settings = {"synchronization={sma {}}", "learners.per_device.fixed=1",
                                       "learners.per_device.team=default"};
  for (const std::string& name : names) settings.push_back("devices=" + name);
  for (int i = 0; i < written.model().layers_size(); ++i) {  // each device has the whole model
    if (!written.model().layers(i).dense().has_split()) continue;
    settings.push_back(fmt::format("model.layers[{}].dense.split=default", i));
  }
  if (in_float32) settings.push_back(fmt::format("training.precision={}", to_string(engine::Precision::kFloat32)));
  JobOptions job = parse_job(source, settings);
  job.learners_are_given = false;
  std::ranges::transform(job.devices, job.learners_per_device.begin(), default_learners);
  return job;
}

// A sparse model is evaluated on the CPU, wherever it was trained.
JobOptions on_cpu(const SourceText& source, const std::vector<std::string>& names) {
  std::string problem = why_not_here(names);
  if (problem.empty() &&
      std::ranges::any_of(names, [](const auto& name) { return engine::parse_device(name).is_cuda(); })) {
    problem = "the model of this job is evaluated on a CPU device; leave it out, or write --devices cpu";
  }
  if (!problem.empty()) engine::fail(engine::ErrorKind::kUsage, "--devices: {}", problem);
  std::vector<std::string> settings;
  for (const std::string& name : names) settings.push_back("devices=" + name);
  if (names.empty()) settings.emplace_back("devices=cpu");
  return parse_job(source, settings);
}

}  // namespace

JobOptions load_for_evaluation(const std::string& path, std::span<const std::string> devices) {
  const SourceText source = read_job_file(path);
  const v1::Job written = written_job(source);
  std::vector<std::string> names(devices.begin(), devices.end());
  if (is_sparse(written)) return on_cpu(source, names);
  std::vector<std::string> warnings;
  if (!names.empty()) {
    const std::string problem = why_not_here(names);
    if (!problem.empty()) engine::fail(engine::ErrorKind::kUsage, "--devices: {}", problem);
  } else {
    const std::string problem =
        why_not_here(std::vector<std::string>(written.devices().begin(), written.devices().end()));
    if (!problem.empty()) {
      for (const engine::DeviceSpec& device : engine::list_devices()) names.push_back(device.name);
      warnings.push_back(fmt::format("the run's devices are not here: {}. Evaluating on {}; the last digits may differ",
                                     problem, fmt::join(names, ", ")));
    }
  }
  const std::string precision = precision_problem_on(names, written);
  if (!precision.empty()) {
    warnings.push_back(fmt::format("{}. Evaluating in FP32; the accuracy may differ a little", precision));
  }
  // Nothing is trained, so no momentum may forbid a scheme that an earlier program has accepted.
  const std::vector<std::string> without_momentum = {"optimizer={sgd {}}"};
  JobOptions job =
      names.empty() ? parse_job(source, without_momentum) : on_devices(source, written, names, !precision.empty());
  if (job.training.chooses_precision) {
    warnings.emplace_back("precision AUTO is settled when a run begins; this job has no run, so it computes in FP32");
  }
  job.warnings = std::move(warnings);  // the job's own warnings concern training
  return job;
}

bool is_sparse_job_file(const std::string& path) { return is_sparse(written_job(read_job_file(path))); }

}  // namespace arbalest::jobs
