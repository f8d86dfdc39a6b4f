#include "report/run_lock.h"

#include <fcntl.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cerrno>
#include <fstream>
#include <sstream>
#include <string>

#include <fmt/format.h>

#include "saved_model/run_files.h"

namespace arbalest::jobs {

namespace fs = std::filesystem;

bool is_locked(const fs::path& file) {
  const int descriptor = open(file.c_str(), O_RDONLY | O_CLOEXEC);
  if (descriptor < 0) return false;
  const bool locked = flock(descriptor, LOCK_SH | LOCK_NB) != 0 && errno == EWOULDBLOCK;
  close(descriptor);
  return locked;
}

bool is_running(const fs::path& directory) { return is_locked(directory / kMetricsFile); }

std::optional<int> running_process(const fs::path& directory) {
  struct stat status {};
  if (stat((directory / kMetricsFile).c_str(), &status) != 0) return std::nullopt;
  // Each line: "1: FLOCK  ADVISORY  WRITE <process> <major>:<minor>:<inode> 0 EOF"
  const std::string inode = fmt::format(":{}", status.st_ino);
  std::ifstream locks("/proc/locks");
  for (std::string line; std::getline(locks, line);) {
    std::istringstream words(line);
    std::string number, kind, mode, access, file;
    int process = 0;
    if (!(words >> number >> kind >> mode >> access >> process >> file)) continue;
    if (kind == "FLOCK" && access == "WRITE" && file.ends_with(inode) && process > 0) return process;
  }
  return std::nullopt;
}

}  // namespace arbalest::jobs
