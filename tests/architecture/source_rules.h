// The rules for folders, names and functions that a program can check in source files.
#pragma once

#include <string>
#include <vector>

namespace arbalest::tests {

struct Violation {
  std::string file;
  int line = 0;
  std::string reason;
};

// Checks one file: allowed includes, folders that may include a vendor's headers, conditionals on CUDA, lengths, sizes
// of classes, unfinished work, access to the environment, thread-locals, singletons, and questions that belong
// elsewhere. `path` is relative to the root, such as "engine/cpu/operators/conv2d.cc". `text` is the content of the
// file.
std::vector<Violation> check_source(const std::string& path, const std::string& text);

// Returns one line "file:line: reason" per violation.
std::string describe(const std::vector<Violation>& violations);

}  // namespace arbalest::tests
