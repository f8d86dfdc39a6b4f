#pragma once

#include <string>

namespace arbalest::engine::host {

// Version of the oneTBB library that is loaded at run time.
std::string onetbb_version();

}  // namespace arbalest::engine::host
