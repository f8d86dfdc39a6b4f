#include "jobs/report/run_origin_file.h"

#include <fstream>
#include <string>
#include <system_error>

#include "jobs/export/atomic_file.h"
#include "jobs/export/run_files.h"

namespace arbalest::jobs {

namespace fs = std::filesystem;

void write_origin(const fs::path& run, const fs::path& checkpoint) {
  write_file(run / kOriginFile, fs::absolute(checkpoint).lexically_normal().string() + "\n");
}

std::optional<fs::path> read_origin(const fs::path& run) {
  std::ifstream file(run / kOriginFile);
  std::string line;
  if (!std::getline(file, line) || line.empty()) return std::nullopt;
  return line;
}

bool is_at_or_in(const fs::path& checkpoint, const fs::path& given) {
  std::error_code error;
  const fs::path run = checkpoint.parent_path().parent_path();
  return fs::equivalent(checkpoint, given, error) || fs::equivalent(run, given, error);
}

}  // namespace arbalest::jobs
