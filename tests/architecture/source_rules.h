// What design sections 2 and 4 ask of source files and a program can see.
#pragma once

#include <string>
#include <vector>

namespace arbalest::tests {

struct Violation {
  std::string file;
  int line = 0;
  std::string reason;
};

// `path` relative to the root, as "engine/cpu/conv2d.cc"; `text` is the file's. Checked: where includes may point,
// which folder may include a vendor's headers, conditionals on CUDA, length, work left open, the environment,
// thread-locals and singletons.
std::vector<Violation> check_source(const std::string& path, const std::string& text);

// "file:line: reason", one a line.
std::string describe(const std::vector<Violation>& violations);

}  // namespace arbalest::tests
