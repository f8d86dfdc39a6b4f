// The directory for a command's files: the one of --output, or a new one below runs/.
#pragma once

#include <filesystem>
#include <string>
#include <vector>

#include "saved_model/file_identity.h"

namespace arbalest::jobs {

// Throws as OutputDirectory does; `error` is an errno.
[[noreturn]] void fail_directory(const char* action, const std::filesystem::path& path, int error);

struct MadeDirectory {
  std::filesystem::path path;
  FileIdentity identity;  // another directory may have taken the name
};

class OutputDirectory {
 public:
  // Creates `path` with its parents; if `path` is "", creates "runs/<name>-<time>", with a number added if that exists.
  // Throws ErrorKind::kUsage if the directory cannot be created, kOutOfMemory if the disk is full.
  OutputDirectory(const std::filesystem::path& path, const std::string& name);
  // Removes the directories that this object created and that are still empty. Never removes others of their names.
  ~OutputDirectory();
  OutputDirectory(const OutputDirectory&) = delete;
  OutputDirectory& operator=(const OutputDirectory&) = delete;

  const std::filesystem::path& path() const noexcept { return path_; }
  // Whether this object created the directory. If two processes create it at once, it is new to one of them.
  bool is_new() const noexcept { return !made_.empty() && made_.back().path == path_; }

 private:
  std::filesystem::path path_;
  std::vector<MadeDirectory> made_;  // innermost last
};

}  // namespace arbalest::jobs
