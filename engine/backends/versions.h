// Versions of the libraries that the engine runs on, as loaded, for reports.
#pragma once

#include <string>
#include <vector>

namespace arbalest::engine {

struct LibraryVersion {
  std::string name;     // "oneDNN"
  std::string version;  // "2.6.3", "2.6.3 (OpenMP)"
};

std::vector<LibraryVersion> library_versions();

}  // namespace arbalest::engine
