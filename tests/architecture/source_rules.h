// The rules of design sections 2 and 4 that a program can check in source files.
#pragma once

#include <string>
#include <vector>

namespace arbalest::tests {

struct Violation {
  std::string file;
  int line = 0;
  std::string reason;
};

// Checks one file. `path`: relative to the root, such as "engine/cpu/operators/conv2d.cc"; `text`: its content. Checked
// are: allowed includes, folders that may include a vendor's headers, conditionals on CUDA, lengths, work left open,
// access to the environment, thread-locals and singletons.
std::vector<Violation> check_source(const std::string& path, const std::string& text);

// "file:line: reason", one per line.
std::string describe(const std::vector<Violation>& violations);

}  // namespace arbalest::tests
