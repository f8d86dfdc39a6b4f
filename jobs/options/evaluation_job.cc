#include "jobs/options/evaluation_job.h"

#include <algorithm>
#include <vector>

#include <fmt/ranges.h>

#include "engine/cuda_devices.h"
#include "engine/error.h"
#include "jobs/options/job_reader.h"
#include "jobs/options/load_job.h"
#include "jobs/options/text_format.h"

namespace arbalest::jobs {

namespace {

// The devices that the text names; none if it is no job.
std::vector<std::string> named_devices(const SourceText& source) {
  v1::Job job;
  const SyntaxReport report = parse_text(source, TextOutline(source, *v1::Job::descriptor()), job);
  if (!report.issues.empty()) return {};
  return {job.devices().begin(), job.devices().end()};
}

// Why the devices cannot be used here; "" if they can.
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

JobOptions on_devices(const SourceText& source, const std::vector<std::string>& names) {
  // How learners are kept together is of no consequence, and must not forbid any number of them.
  std::vector<std::string> settings = {"synchronization.sma={}", "learners.per_device.fixed=1"};
  for (const std::string& name : names) settings.push_back("devices=" + name);
  JobOptions job = parse_job(source, settings);
  job.learners_are_given = false;
  std::ranges::transform(job.devices, job.learners_per_device.begin(), default_learners);
  return job;
}

}  // namespace

JobOptions load_for_evaluation(const std::string& path, std::span<const std::string> devices) {
  const SourceText source = read_job_file(path);
  std::vector<std::string> names(devices.begin(), devices.end());
  std::string warning;
  if (!names.empty()) {
    const std::string problem = why_not_here(names);
    if (!problem.empty()) engine::fail(engine::ErrorKind::kUsage, "--devices: {}", problem);
  } else {
    const std::string problem = why_not_here(named_devices(source));
    if (!problem.empty()) {
      for (const engine::DeviceSpec& device : engine::list_devices()) names.push_back(device.name);
      warning = fmt::format("the run's devices are not here: {}. Evaluating on {}; the last digits may differ", problem,
                            fmt::join(names, ", "));
    }
  }
  JobOptions job = names.empty() ? parse_job(source) : on_devices(source, names);
  job.warnings.clear();  // they are about training
  if (!warning.empty()) job.warnings.push_back(warning);
  return job;
}

}  // namespace arbalest::jobs
