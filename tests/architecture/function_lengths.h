// The lengths of the functions in a C++ source, found by braces and the words before them.
#pragma once

#include <string_view>
#include <vector>

namespace arbalest::tests {

struct FunctionLength {
  int line = 0;   // line of the opening brace, counted from 1
  int lines = 0;  // number of lines, from the opening brace to the closing brace
};

// Finds functions, but not lambdas, at any depth. `code`: source without comments and strings (source_text.h).
std::vector<FunctionLength> function_lengths(std::string_view code);

}  // namespace arbalest::tests
