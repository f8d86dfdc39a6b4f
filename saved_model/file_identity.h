// Tells a file or directory from another one of the same name.
#pragma once

#include <sys/stat.h>
#include <sys/types.h>

#include <filesystem>
#include <utility>

namespace arbalest::jobs {

using FileIdentity = std::pair<dev_t, ino_t>;  // device and inode

// Returns zeros if there is no such file.
inline FileIdentity identity_of(const std::filesystem::path& path) {
  struct stat status {};
  if (stat(path.c_str(), &status) != 0) return {};
  return {status.st_dev, status.st_ino};
}

}  // namespace arbalest::jobs
