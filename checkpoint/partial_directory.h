// The directory in which a checkpoint is built, `.partial-<process>-<number>`. It is locked while its process lives.
#pragma once

#include <filesystem>
#include <string_view>

namespace arbalest::jobs {

inline constexpr std::string_view kPartialPrefix = ".partial-";

class PartialDirectory {
 public:
  // Creates a directory in `parent`. Throws as fail_write does.
  explicit PartialDirectory(const std::filesystem::path& parent);
  // Removes the directory and its files. If that fails, sweep_partial finds them later.
  ~PartialDirectory();
  PartialDirectory(const PartialDirectory&) = delete;
  PartialDirectory& operator=(const PartialDirectory&) = delete;

  const std::filesystem::path& path() const noexcept { return path_; }

  // Syncs the names of its files.
  void sync() const;
  // Gives the directory the name `path`, in one step, and syncs the parent. If a directory has that name, this object
  // owns that one afterwards. Throws as fail_write does; everything is then as before.
  void move_to(const std::filesystem::path& path);

 private:
  bool create(const std::filesystem::path& path);
  void rename_to(const std::filesystem::path& path);
  void exchange_with(const std::filesystem::path& path);

  std::filesystem::path path_;  // "": nothing to remove
  int lock_ = -1;
};

// Removes the partial directory at `path` unless a process still works in it. On file systems without locks, the number
// in the name tells the process. Returns an errno, 0 if it is removed or in use.
int remove_if_abandoned(const std::filesystem::path& path);

// Removes the directory of a checkpoint, the manifest first, without following symbolic links. Returns an errno, 0 if
// nothing is left.
int remove_checkpoint_files(const std::filesystem::path& path);

}  // namespace arbalest::jobs
