// Physical memory of this process.
#pragma once

#include <unistd.h>

#include <fstream>

namespace arbalest::tests {

inline double resident_bytes() {
  std::ifstream file("/proc/self/statm");
  double size = 0.0;
  double resident = 0.0;
  file >> size >> resident;
  return resident * static_cast<double>(sysconf(_SC_PAGESIZE));
}

}  // namespace arbalest::tests
