// Arguments that all commands on a job file share.
#pragma once

#include <string>
#include <vector>

#include <CLI/CLI.hpp>

#include "options/job_options.h"

namespace arbalest::cli {

struct JobArguments {
  std::string path;
  std::vector<std::string> overrides;  // "training.batch_size=16"
};

// Adds JOB and --set. `arguments` must outlive the parsing.
void add_job_arguments(CLI::App& command, JobArguments& arguments);

// Adds --set. `settings` must outlive the parsing.
void add_settings(CLI::App& command, std::vector<std::string>& settings);

void add_data_root(CLI::App& command, std::string& data_root);

// Warns if --data-root was given and does not lead to the job's data, because the job names their place by itself.
// `file`: the job file.
void warn_of_unused_data_root(const jobs::JobOptions& job, const std::string& data_root, const std::string& file);

// For arguments that name a file or directory. Returns what is wrong with an empty name (an unset variable) or one that
// looks like an option (its own name was forgotten); else "".
std::string check_name(const std::string& name);

// For arguments that are whole numbers: CLI11 would read one with a leading zero as octal. Returns what is wrong with
// such a number; else "".
std::string check_decimal(const std::string& number);

// Reads the job; throws as jobs::load_job does.
jobs::JobOptions load(const JobArguments& arguments);

// Logs warnings of commands that have no reporter.
void log_warnings(const std::vector<std::string>& warnings);

}  // namespace arbalest::cli
