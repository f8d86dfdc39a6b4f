// What the program takes from its surroundings: environment variables and the terminal. Nothing else reads them.
#pragma once

#include <optional>
#include <string>

#include "jobs/report/console_reporter.h"
#include "jobs/run/learner_cache.h"

namespace arbalest::cli {

// `option` unless it is "", else $ARBALEST_DATA, else "data".
std::string data_root(const std::string& option);

// A bar and colors where stderr is a terminal that has them; NO_COLOR and TERM are obeyed.
jobs::ConsoleOptions console_options(bool quiet);

// Below $XDG_CACHE_HOME, else $HOME/.cache; none if neither names a directory from the root.
std::optional<jobs::LearnerCache> learner_cache();

// Log lines go to stderr, warnings and worse unless SPDLOG_LEVEL says otherwise.
void start_log();

}  // namespace arbalest::cli
