#pragma once

#include <string>

namespace arbalest::engine::host {

// Version of the loaded library.
std::string onetbb_version();

}  // namespace arbalest::engine::host
