#include "jobs/report/tensorboard/event_file.h"

#include <fcntl.h>
#include <unistd.h>

#include <atomic>
#include <cerrno>
#include <climits>
#include <cstddef>
#include <cstdint>
#include <span>
#include <string>
#include <system_error>
#include <vector>

#include <fmt/format.h>

#include "dataflow/input/formats/record_file.h"
#include "engine/error.h"
#include "jobs/export/atomic_file.h"

namespace arbalest::jobs {

namespace fs = std::filesystem;

namespace {

std::string host_name() {
  char name[HOST_NAME_MAX + 1] = {};
  return gethostname(name, HOST_NAME_MAX) == 0 ? name : "localhost";
}

// TensorBoard reads the files of a directory in the order of their names.
fs::path new_path(const fs::path& directory, double wall_time) {
  static std::atomic<int> files{0};
  return directory / fmt::format("{}{:010}.{}.{}.{}", kEventFilePrefix, static_cast<std::int64_t>(wall_time),
                                 host_name(), getpid(), files++);
}

void make_directory(const fs::path& directory) {
  std::error_code error;
  fs::create_directories(directory, error);
  if (error) fail_write(directory, error.value());
}

tensorboard::Event version_event(double wall_time) {
  tensorboard::Event event;
  event.set_wall_time(wall_time);
  event.set_file_version("brain.Event:2");
  event.mutable_source_metadata()->set_writer("arbalest");
  return event;
}

tensorboard::Event start_event(double wall_time, std::int64_t step) {
  tensorboard::Event event;
  event.set_wall_time(wall_time);
  event.set_step(step);
  event.mutable_session_log()->set_status(tensorboard::SessionLog::START);
  return event;
}

}  // namespace

void remove_event_files(const fs::path& directory) {
  std::error_code error;
  std::vector<fs::path> found;
  for (fs::directory_iterator entry(directory, error), end; !error && entry != end; entry.increment(error)) {
    if (entry->path().filename().native().starts_with(kEventFilePrefix)) found.push_back(entry->path());
  }
  for (const fs::path& path : found) {
    if (unlink(path.c_str()) != 0 && errno != ENOENT) fail_write(path, errno);
  }
}

EventFile::EventFile(const fs::path& directory, double wall_time, std::int64_t step) {
  make_directory(directory);
  remove_event_files(directory);
  path_ = new_path(directory, wall_time);
  file_ = open(path_.c_str(), O_WRONLY | O_CREAT | O_EXCL | O_APPEND | O_CLOEXEC, 0666);
  if (file_ < 0) fail_write(path_, errno);
  try {
    append(version_event(wall_time));
    append(start_event(wall_time, step));
  } catch (...) {
    close(file_);
    throw;
  }
}

EventFile::~EventFile() { close(file_); }

void EventFile::append(const tensorboard::Event& event) {
  const std::string data = event.SerializeAsString();
  const std::vector<std::uint8_t> record =
      dataflow::record_of({reinterpret_cast<const std::uint8_t*>(data.data()), data.size()});
  write_fully(file_, std::as_bytes(std::span(record)), path_);
}

}  // namespace arbalest::jobs
