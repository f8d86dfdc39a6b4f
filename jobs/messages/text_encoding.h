// Checks and cleans text from outside, which may hold any bytes.
#pragma once

#include <string>
#include <string_view>

namespace arbalest::jobs {

bool is_utf8(std::string_view text);

// Whether `c` is a control character: below space, or delete.
bool is_control(char c);

// Returns the text with '?' for control characters except tabs, and for all bytes that are not ASCII if the text is not
// UTF-8.
std::string printable(std::string_view text);

// Returns about the first 100 bytes, and "..." if there are more.
std::string shortened(std::string_view text);

}  // namespace arbalest::jobs
