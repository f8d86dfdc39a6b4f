#include "report/tensorboard/event_file.h"

#include <fcntl.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <charconv>
#include <chrono>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <span>
#include <string>
#include <system_error>
#include <vector>

#include <fmt/format.h>

#include "dataflow/input/formats/records/record_file.h"
#include "saved_model/atomic_file.h"

namespace arbalest::jobs {

namespace fs = std::filesystem;

namespace {

constexpr std::size_t kSecondsDigits = 10;

std::string host_name() {
  char name[HOST_NAME_MAX + 1] = {};
  return gethostname(name, HOST_NAME_MAX) == 0 ? name : "localhost";
}

std::vector<fs::path> event_files_in(const fs::path& directory) {
  std::vector<fs::path> found;
  std::error_code error;
  for (fs::directory_iterator entry(directory, error), end; !error && entry != end; entry.increment(error)) {
    if (entry->path().filename().native().starts_with(kEventFilePrefix)) found.push_back(entry->path());
  }
  std::ranges::sort(found);
  return found;
}

// Returns the seconds in the name of an event file; 0 if the name has none.
std::int64_t seconds_in(const fs::path& path) {
  const std::string digits = path.filename().string().substr(std::strlen(kEventFilePrefix), kSecondsDigits);
  std::int64_t seconds = 0;
  std::from_chars(digits.data(), digits.data() + digits.size(), seconds);
  return seconds;
}

// TensorBoard reads the files of a directory in the order of their names, and does not look back. So the new name comes
// after those of `others`, even if the clock was set back.
fs::path new_path(const fs::path& directory, const std::vector<fs::path>& others) {
  const auto clock = std::chrono::system_clock::now().time_since_epoch();
  std::int64_t seconds = std::chrono::duration_cast<std::chrono::seconds>(clock).count();
  for (const fs::path& other : others) seconds = std::max(seconds, seconds_in(other) + 1);
  return directory / fmt::format("{}{:0{}}.{}.{}.0", kEventFilePrefix, seconds, kSecondsDigits, host_name(), getpid());
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

void retire_event_files(const fs::path& directory) {
  std::vector<fs::path> files = event_files_in(directory);
  if (files.empty()) return;
  if (truncate(files.back().c_str(), 0) != 0 && errno != ENOENT) fail_write(files.back(), errno);
  files.pop_back();
  for (const fs::path& path : files) {
    if (unlink(path.c_str()) != 0 && errno != ENOENT) fail_write(path, errno);
  }
}

EventFile::EventFile(const fs::path& directory, double wall_time, std::int64_t step) {
  make_directory(directory);
  retire_event_files(directory);
  path_ = new_path(directory, event_files_in(directory));
  file_ = open(path_.c_str(), O_WRONLY | O_CREAT | O_EXCL | O_APPEND | O_CLOEXEC, 0666);
  if (file_ < 0) fail_write(path_, errno);
  identity_ = identity_of(path_);
  try {
    append(version_event(wall_time));
    append(start_event(wall_time, step));
  } catch (...) {
    close(file_);
    throw;
  }
}

EventFile::~EventFile() { close(file_); }

bool EventFile::is_in_place() const { return identity_of(path_) == identity_; }

void EventFile::append(const tensorboard::Event& event) {
  const std::string data = event.SerializeAsString();
  const std::vector<std::uint8_t> record =
      dataflow::record_of({reinterpret_cast<const std::uint8_t*>(data.data()), data.size()});
  write_fully(file_, std::as_bytes(std::span(record)), path_);
}

}  // namespace arbalest::jobs
