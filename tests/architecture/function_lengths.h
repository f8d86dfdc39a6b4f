// The lengths of the functions in a C++ source, told by braces and the words before them.
#pragma once

#include <string_view>
#include <vector>

namespace arbalest::tests {

struct FunctionLength {
  int line = 0;   // of the opening brace, counted from 1
  int lines = 0;  // from the line of the opening brace to that of the closing brace
};

// `code`: source without comments and strings (source_text.h). Finds functions, lambdas excepted, at any depth.
std::vector<FunctionLength> function_lengths(std::string_view code);

}  // namespace arbalest::tests
