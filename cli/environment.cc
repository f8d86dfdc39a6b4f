#include "cli/environment.h"

#include <sys/ioctl.h>
#include <unistd.h>

#include <cstdlib>
#include <ctime>
#include <filesystem>
#include <memory>
#include <string>
#include <utility>

#include <fmt/format.h>
#include <spdlog/cfg/env.h>
#include <spdlog/pattern_formatter.h>
#include <spdlog/sinks/stdout_sinks.h>
#include <spdlog/spdlog.h>

#include "messages/text_encoding.h"

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

namespace {

// The flag %* of a pattern: the message without control characters.
class SafeMessage final : public spdlog::custom_flag_formatter {
 public:
  void format(const spdlog::details::log_msg& message, const std::tm&, spdlog::memory_buf_t& to) override {
    const std::string safe =
        jobs::safe_text({message.payload.data(), message.payload.size()}, jobs::TextFor::kTerminal);
    to.append(safe.data(), safe.data() + safe.size());
  }
  std::unique_ptr<custom_flag_formatter> clone() const override { return std::make_unique<SafeMessage>(); }
};

void set_pattern(spdlog::logger& log, std::string pattern) {
  auto formatter = std::make_unique<spdlog::pattern_formatter>();
  formatter->add_flag<SafeMessage>('*').set_pattern(std::move(pattern));
  log.set_formatter(std::move(formatter));
}

}  // namespace

void start_log() {
  auto log = std::make_shared<spdlog::logger>("arbalest", std::make_shared<spdlog::sinks::stderr_sink_mt>());
  set_pattern(*log, "%n: %l: %*");
  log->set_level(spdlog::level::warn);
  spdlog::set_default_logger(std::move(log));
  spdlog::cfg::load_env_levels();
}

void tag_log(int rank) {
  set_pattern(*spdlog::default_logger(), fmt::format("%n: rank {}: %l: %*", rank));
  if (rank > 0 && variable("SPDLOG_LEVEL").empty()) spdlog::default_logger()->set_level(spdlog::level::err);
}

}  // namespace arbalest::cli
