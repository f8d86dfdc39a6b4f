// Where a command keeps what it finds: the directory of --output, or a new one below runs/.
#pragma once

#include <filesystem>
#include <string>
#include <vector>

namespace arbalest::jobs {

// Throws as OutputDirectory does; `error` is an errno.
[[noreturn]] void fail_directory(const char* action, const std::filesystem::path& path, int error);

class OutputDirectory {
 public:
  // Makes `path` with its parents, or, if it is "", "runs/<name>-<time>" with a number where that is there already.
  // Throws ErrorKind::kUsage if it cannot be made, kOutOfMemory if the disk is full.
  OutputDirectory(const std::filesystem::path& path, const std::string& name);
  // Removes the directories that it has made and into which nothing has come.
  ~OutputDirectory();
  OutputDirectory(const OutputDirectory&) = delete;
  OutputDirectory& operator=(const OutputDirectory&) = delete;

  const std::filesystem::path& path() const noexcept { return path_; }
  // Whether it was not there before; of two processes that make it at once it is new to one.
  bool is_new() const noexcept { return !made_.empty() && made_.back() == path_; }

 private:
  std::filesystem::path path_;
  std::vector<std::filesystem::path> made_;  // innermost last
};

}  // namespace arbalest::jobs
