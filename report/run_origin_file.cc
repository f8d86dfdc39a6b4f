#include "report/run_origin_file.h"

#include <fstream>
#include <string>
#include <system_error>

#include "engine/base/error.h"
#include "saved_model/atomic_file.h"
#include "saved_model/run_files.h"

namespace arbalest::jobs {

namespace fs = std::filesystem;

void write_origin(const fs::path& run, const fs::path& checkpoint) {
  write_file(run / kOriginFile, fs::absolute(checkpoint).lexically_normal().string() + "\n");
}

namespace {

// The first line of the file, if it is whole.
std::optional<fs::path> line_of(const fs::path& path) {
  std::ifstream file(path);
  std::string line;
  if (!std::getline(file, line) || line.empty() || file.eof()) return std::nullopt;
  return line;
}

}  // namespace

std::optional<fs::path> read_origin(const fs::path& run) {
  const fs::path file = run / kOriginFile;
  std::error_code error;
  const fs::file_status status = fs::status(file, error);
  if (fs::is_regular_file(status)) return line_of(file);
  if (fs::exists(status)) {
    engine::fail(engine::ErrorKind::kUsage, "'{}' is not a file; remove it, or choose another directory with --output",
                 file.string());
  }
  for (const fs::path& partial : partial_files_of(file)) {
    if (std::optional<fs::path> origin = line_of(partial)) return origin;
  }
  return std::nullopt;
}

bool is_at_or_in(const fs::path& checkpoint, const fs::path& given) {
  std::error_code error;
  const fs::path run = checkpoint.parent_path().parent_path();
  return fs::equivalent(checkpoint, given, error) || fs::equivalent(run, given, error);
}

}  // namespace arbalest::jobs
