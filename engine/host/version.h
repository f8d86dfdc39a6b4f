#pragma once

#include <string>

namespace arbalest::engine::host {

// Of the library that is loaded.
std::string onetbb_version();

}  // namespace arbalest::engine::host
