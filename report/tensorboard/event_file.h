// TensorBoard's event files: TFRecords of serialized events (proto/tensorboard/events.proto).
#pragma once

#include <cstdint>
#include <filesystem>

#include "saved_model/file_identity.h"
#include "tensorboard/events.pb.h"

namespace arbalest::jobs {

// The name of every event file begins so.
inline constexpr const char* kEventFilePrefix = "events.out.tfevents.";

// Empties the newest event file of a directory, and removes the others. The empty file stays, because TensorBoard's
// Python reader goes on from the file that it reads to the next one, but not from a file that is gone. Throws as
// fail_write does (saved_model/atomic_file.h).
void retire_event_files(const std::filesystem::path& directory);

// Writes one file. A reader may follow it, because append() writes whole records.
class EventFile {
 public:
  // Makes `directory` with its parents, retires the event files that are there, and makes one that follows them. It
  // begins with the version, and with the start of a session at `step`: TensorBoard forgets what it has read of that
  // and later steps. Throws as fail_write does (saved_model/atomic_file.h).
  //   wall_time: seconds since 1970
  EventFile(const std::filesystem::path& directory, double wall_time, std::int64_t step);
  ~EventFile();
  EventFile(const EventFile&) = delete;
  EventFile& operator=(const EventFile&) = delete;

  // Throws as fail_write does; the file may then end within a record.
  void append(const tensorboard::Event& event);
  // Whether the file still has its name: writes to a deleted file succeed.
  bool is_in_place() const;

 private:
  std::filesystem::path path_;
  int file_ = -1;
  FileIdentity identity_;
};

}  // namespace arbalest::jobs
