// Prints errors to standard error.
#pragma once

#include <string>

namespace arbalest::cli {

// Prints the message, and returns `code`.
int report_error(int code, const std::string& message);

}  // namespace arbalest::cli
