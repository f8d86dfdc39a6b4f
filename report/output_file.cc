#include "report/output_file.h"

#include <algorithm>
#include <array>
#include <system_error>

#include "checkpoint/best_model.h"
#include "checkpoint/checkpoint_saver.h"
#include "checkpoint/manifest.h"
#include "engine/base/error.h"
#include "saved_model/run_files.h"

namespace arbalest::jobs {

namespace fs = std::filesystem;
using engine::ErrorKind;
using engine::fail;

namespace {

// Whether `name` is a file or a folder that a run makes in its directory.
bool is_own_name(const fs::path& name) {
  static const std::array<fs::path, 11> kOwn = {kJobFile,     kReplayFile,        kKernelsFile,      kOriginFile,
                                                kModelFile,   kBestModel,         kEarlierBest,      kMetricsFile,
                                                kSummaryFile, checkpoints_of({}), kTensorBoardFolder};
  return std::ranges::find(kOwn, name) != kOwn.end();
}

bool is_there(const fs::path& path) {
  std::error_code unknown;  // what cannot be looked at cannot be replaced
  return fs::exists(path, unknown);
}

// Returns the full path, with the links in the path of its folder resolved. A link at its end would itself be replaced.
fs::path resolved(const fs::path& path) {
  std::error_code error;
  const fs::path full = fs::absolute(path, error).lexically_normal();
  const fs::path folder = fs::weakly_canonical(full.parent_path(), error);
  return error ? full : folder / full.filename();
}

void refuse_special_file(const std::string& option, const fs::path& path) {
  std::error_code unknown;  // opening the file then fails, too, and says why
  const fs::file_status status = fs::status(path, unknown);
  if (!fs::exists(status) || fs::is_regular_file(status)) return;
  fail(ErrorKind::kUsage, "{}: '{}' is no regular file; name another one", option, path.string());
}

}  // namespace

void refuse_run_file(const std::string& option, const fs::path& path, const fs::path& run) {
  const fs::path file = resolved(path);
  const fs::path given = run.empty() ? run : resolved(run / kJobFile).parent_path();
  if (is_there(file.parent_path() / kManifestFile)) {
    fail(ErrorKind::kUsage, "{}: '{}' would lie in a checkpoint, which holds its own files only; name another file",
         option, path.string());
  }
  for (fs::path folder = file.parent_path(), name = file.filename();; folder = folder.parent_path()) {
    const bool is_run = folder == given || is_there(folder / kJobFile);
    if (is_run && is_own_name(name)) {
      fail(ErrorKind::kUsage, "{}: '{}' is a name that the run in '{}' uses for its own files; name another file",
           option, path.string(), folder.string());
    }
    if (folder == folder.parent_path()) return;
    name = folder.filename();
  }
}

std::unique_ptr<AtomicFile> open_output_file(const std::string& option, const fs::path& path) {
  refuse_run_file(option, path);
  refuse_special_file(option, path);
  remove_partial_files_of(path);
  try {
    return std::make_unique<AtomicFile>(path);
  } catch (const engine::Error& error) {
    if (error.kind() == ErrorKind::kOutOfMemory) throw;
    fail(ErrorKind::kUsage, "{}: {}; name another file", option, error.what());
  }
}

}  // namespace arbalest::jobs
