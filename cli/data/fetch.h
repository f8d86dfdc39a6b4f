#pragma once

#include "cli/command.h"

namespace arbalest::cli {

// arbalest data fetch
Command add_data_fetch(CLI::App& data);

}  // namespace arbalest::cli
