// Tells `make faults` how many faults a test has tried.
#pragma once

#include <cstdlib>
#include <fstream>
#include <string>

namespace arbalest::tests {

// Adds a line with `count` to the file that the environment names, if it names one.
inline void count_faults(int count) {
  const char* file = std::getenv("ARBALEST_FAULT_COUNTS");
  if (file != nullptr) std::ofstream(file, std::ios::app) << count << '\n';
}

// The number in an environment variable, for longer campaigns than CI's; `otherwise` if it is not set.
inline int number_from_environment(const char* variable, int otherwise) {
  const char* text = std::getenv(variable);
  return text == nullptr ? otherwise : std::stoi(text);
}

}  // namespace arbalest::tests
