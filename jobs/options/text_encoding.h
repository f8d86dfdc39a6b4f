// Text from outside that may be anything.
#pragma once

#include <string>
#include <string_view>

namespace arbalest::jobs {

bool is_utf8(std::string_view text);

// Below space, or delete.
bool is_control(char c);

// The text with '?' for control characters, and for all that is not ASCII if the text is not UTF-8. Tabs stay.
std::string printable(std::string_view text);

// At most about 100 bytes of it, and "..." for the rest.
std::string shortened(std::string_view text);

}  // namespace arbalest::jobs
