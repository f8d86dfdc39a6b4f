// Reading a small checkpoint.
#pragma once

#include <algorithm>
#include <filesystem>
#include <string>
#include <vector>

#include "checkpoint/checkpoint.h"
#include "checkpoint/checkpoint_store.h"
#include "tests/jobs/small_checkpoint.h"
#include "tests/support/catch.h"
#include "tests/support/temporary_directory.h"

namespace arbalest::jobs {

// A directory for many small writes, which are fast in memory.
inline std::filesystem::path memory_directory() {
  const std::filesystem::path memory = "/dev/shm";
  return std::filesystem::is_directory(memory) ? memory : std::filesystem::temp_directory_path();
}

// Returns the error of opening a checkpoint, which must name the directory; "accepted" if there is none.
inline std::string refusal(const std::filesystem::path& path) {
  try {
    open_checkpoint(path);
  } catch (const engine::Error& error) {
    if (error.kind() != engine::ErrorKind::kCheckpoint) return std::string("another kind: ") + error.what();
    if (std::string(error.what()).find(path.string()) == std::string::npos) {
      return std::string("the directory is not named: ") + error.what();
    }
    return error.what();
  }
  return "accepted";
}

inline std::vector<std::string> names_in(const std::filesystem::path& directory) {
  std::vector<std::string> names;
  for (const auto& entry : std::filesystem::directory_iterator(directory)) names.push_back(entry.path().filename());
  std::sort(names.begin(), names.end());
  return names;
}

// For checkpoints among which none is damaged.
inline void no_warning(const std::string& text) { FAIL_CHECK(text); }

}  // namespace arbalest::jobs
