// The program's environment: variables and the terminal. No other code reads them.
#pragma once

#include <optional>
#include <string>

#include "report/console_reporter.h"
#include "train/learners/learner_cache.h"

namespace arbalest::cli {

// Returns `option` unless it is "", else $ARBALEST_DATA, else "data".
std::string data_root(const std::string& option);

// Uses a bar and colors if stderr is a terminal that supports them; obeys NO_COLOR and TERM.
jobs::ConsoleOptions console_options(bool quiet);

// The cache below $XDG_CACHE_HOME, else below $HOME/.cache; none if neither is an absolute path.
std::optional<jobs::LearnerCache> learner_cache();

// Sends log lines to stderr: warnings and worse, unless SPDLOG_LEVEL says otherwise.
void start_log();
// From now on log lines begin with the rank of this process. Other ranks than 0 log errors only, unless SPDLOG_LEVEL is
// set.
void tag_log(int rank);

}  // namespace arbalest::cli
