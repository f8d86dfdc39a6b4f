#include "report/output_directory.h"

#include <unistd.h>

#include <cerrno>
#include <cstring>
#include <ctime>
#include <system_error>

#include <fmt/chrono.h>
#include <fmt/format.h>

#include "engine/base/error.h"
#include "messages/failure.h"

namespace arbalest::jobs {

using engine::ErrorKind;
namespace fs = std::filesystem;

namespace {

// "runs/lenet-digits-20250131-142530". The job reader allows only characters in a name that a file name may have.
fs::path fresh_path(const std::string& name) {
  const std::time_t now = std::time(nullptr);
  return fs::path("runs") / fmt::format("{}-{:%Y%m%d-%H%M%S}", name, fmt::localtime(now));
}

// Removes the directories that are empty; the others stay.
void remove_empty(const std::vector<MadeDirectory>& directories) {
  for (auto made = directories.rbegin(); made != directories.rend(); ++made) {
    if (identity_of(made->path) == made->identity) rmdir(made->path.c_str());
  }
}

// Creates `path` and its parents. Returns those that did not exist, innermost last.
std::vector<MadeDirectory> make_directories(const fs::path& path) {
  std::vector<MadeDirectory> made;
  fs::path part;
  for (const fs::path& name : path) {
    part /= name;
    std::error_code error;
    if (fs::is_directory(part, error)) continue;
    if (fs::create_directory(part, error)) made.push_back({part, identity_of(part)});
    if (!error) continue;
    remove_empty(made);
    // A file in the place of a directory counts as existing.
    fail_directory("create", path, error.value() == EEXIST ? ENOTDIR : error.value());
  }
  return made;
}

}  // namespace

void fail_directory(const char* action, const fs::path& path, int error) {
  const bool is_full = kind_of_errno(error) == ErrorKind::kOutOfMemory;
  engine::fail(is_full ? ErrorKind::kOutOfMemory : ErrorKind::kUsage,
               "cannot {} the output directory '{}': {}; choose another with --output", action, path.string(),
               std::strerror(error));
}

OutputDirectory::OutputDirectory(const fs::path& path, const std::string& name)
    : path_(path.has_filename() ? path : path.parent_path()) {  // "name/" with a slash at the end
  if (!path_.empty()) {
    made_ = make_directories(path_);
    return;
  }
  const fs::path base = fresh_path(name);
  path_ = base;
  made_ = make_directories(path_);
  // Another run that began in the same second has taken the name.
  for (int number = 2; !is_new(); ++number) {
    path_ = fmt::format("{}-{}", base.string(), number);
    made_ = make_directories(path_);
  }
}

OutputDirectory::~OutputDirectory() { remove_empty(made_); }

}  // namespace arbalest::jobs
