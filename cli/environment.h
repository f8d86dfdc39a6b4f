// What the program takes from its surroundings: environment variables and the terminal. Nothing else reads them.
#pragma once

#include <string>

#include "jobs/report/console_reporter.h"

namespace arbalest::cli {

// `option` unless it is "", else $ARBALEST_DATA, else "data".
std::string data_root(const std::string& option);

// A bar and colors where stderr is a terminal that has them; NO_COLOR and TERM are obeyed.
jobs::ConsoleOptions console_options(bool quiet);

// Log lines go to stderr, warnings and worse unless SPDLOG_LEVEL says otherwise.
void start_log();

}  // namespace arbalest::cli
