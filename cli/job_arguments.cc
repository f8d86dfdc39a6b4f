#include "cli/job_arguments.h"

#include <algorithm>
#include <filesystem>

#include <fmt/format.h>
#include <spdlog/spdlog.h>

#include "options/loading/load_job.h"
#include "options/text/octal_numbers.h"

namespace arbalest::cli {

void add_job_arguments(CLI::App& command, JobArguments& arguments) {
  command.add_option("JOB", arguments.path, "Job file (*.txtpb)")->required()->check(check_name);
  add_settings(command, arguments.overrides);
}

void add_settings(CLI::App& command, std::vector<std::string>& settings) {
  command.add_option("--set", settings,
                     "Replace a field of the job, such as training.batch_size=16; repeatable")
      ->type_name("PATH=VALUE")
      ->expected(1)
      ->allow_extra_args(false)  // one value each; the next word is the job file
      ->multi_option_policy(CLI::MultiOptionPolicy::TakeAll);
}

void add_data_root(CLI::App& command, std::string& data_root) {
  command.add_option("--data-root", data_root, "Directory of the datasets (default: $ARBALEST_DATA, or data/)")
      ->type_name("DIR")
      ->check(check_name);
}

void warn_of_unused_data_root(const jobs::JobOptions& job, const std::string& data_root, const std::string& file) {
  const bool is_sparse = job.sparse && job.graph == nullptr;
  const std::filesystem::path directory = is_sparse ? job.sparse->directory : job.data.directory;
  if (data_root.empty() || !directory.is_absolute()) return;
  const std::filesystem::path root = std::filesystem::absolute(data_root).lexically_normal();
  const std::filesystem::path within = directory.lexically_relative(root);
  if (!within.empty() && *within.begin() != "..") return;
  spdlog::warn(
      "--data-root has no effect: the job looks for its data in '{}', wherever the data root is; for data elsewhere "
      "change the data's directory in '{}'",
      directory.string(), file);
}

std::string check_name(const std::string& name) {
  if (name.empty()) return "the name is empty; is a variable of the shell not set?";
  if (name.starts_with('-')) return fmt::format("'{}' is no name; if it is meant, write './{}'", name, name);
  return "";
}

std::string check_decimal(const std::string& number) {
  if (!jobs::has_leading_zero(number)) return "";
  const std::size_t zeros = std::min(number.find_first_not_of('0'), number.size() - 1);
  return fmt::format("{} has a leading zero, which could mean octal; write {}", number, number.substr(zeros));
}

jobs::JobOptions load(const JobArguments& arguments) { return jobs::load_job(arguments.path, arguments.overrides); }

void log_warnings(const std::vector<std::string>& warnings) {
  for (const std::string& warning : warnings) spdlog::warn("{}", warning);
}

}  // namespace arbalest::cli
