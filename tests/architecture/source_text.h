// C++ source with comments, or comments and strings, replaced by blanks. Line numbers do not change.
#pragma once

#include <string>
#include <string_view>

namespace arbalest::tests {

std::string without_comments(std::string_view text);
std::string without_comments_and_strings(std::string_view text);

}  // namespace arbalest::tests
