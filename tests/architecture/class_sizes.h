// The numbers of member functions of the classes in a C++ source, found by braces and parentheses.
#pragma once

#include <string>
#include <string_view>
#include <vector>

namespace arbalest::tests {

struct ClassSize {
  std::string name;
  int line = 0;       // of the opening brace, counted from 1
  int functions = 0;  // declared in the class, of any access; without deleted ones and those of nested classes
};

// Finds the classes and structs that have a body, at any depth. `code`: source without comments and strings
// (source_text.h).
std::vector<ClassSize> class_sizes(std::string_view code);

}  // namespace arbalest::tests
