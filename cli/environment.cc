#include "cli/environment.h"

#include <sys/ioctl.h>
#include <unistd.h>

#include <cstdlib>
#include <filesystem>
#include <memory>

#include <fmt/format.h>
#include <spdlog/cfg/env.h>
#include <spdlog/sinks/stdout_sinks.h>
#include <spdlog/spdlog.h>

namespace arbalest::cli {

namespace {

// Returns "" if the variable is not set.
std::string variable(const char* name) {
  const char* value = std::getenv(name);
  return value == nullptr ? "" : value;
}

}  // namespace

std::string data_root(const std::string& option) {
  if (!option.empty()) return option;
  const std::string from_environment = variable("ARBALEST_DATA");
  return from_environment.empty() ? "data" : from_environment;
}

std::optional<jobs::LearnerCache> learner_cache() {
  std::filesystem::path base = variable("XDG_CACHE_HOME");
  // Relative paths must be ignored (XDG Base Directory Specification).
  if (!base.is_absolute()) base = std::filesystem::path(variable("HOME")) / ".cache";
  if (!base.is_absolute()) return std::nullopt;
  return jobs::LearnerCache(base / "arbalest" / "learners", ARBALEST_VERSION);
}

jobs::ConsoleOptions console_options(bool quiet) {
  jobs::ConsoleOptions options;
  options.quiet = quiet;
  const std::string terminal = variable("TERM");
  options.bar = isatty(STDERR_FILENO) == 1 && !terminal.empty() && terminal != "dumb";
  options.color = options.bar && variable("NO_COLOR").empty();
  winsize size{};
  if (options.bar && ioctl(STDERR_FILENO, TIOCGWINSZ, &size) == 0 && size.ws_col > 0) options.columns = size.ws_col;
  return options;
}

void start_log() {
  auto log = std::make_shared<spdlog::logger>("arbalest", std::make_shared<spdlog::sinks::stderr_sink_mt>());
  log->set_pattern("%n: %l: %v");
  log->set_level(spdlog::level::warn);
  spdlog::set_default_logger(std::move(log));
  spdlog::cfg::load_env_levels();
}

void tag_log(int rank) {
  spdlog::default_logger()->set_pattern(fmt::format("%n: rank {}: %l: %v", rank));
  if (rank > 0 && variable("SPDLOG_LEVEL").empty()) spdlog::default_logger()->set_level(spdlog::level::err);
}

}  // namespace arbalest::cli
