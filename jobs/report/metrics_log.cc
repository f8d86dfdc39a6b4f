#include "jobs/report/metrics_log.h"

#include <sys/stat.h>
#include <unistd.h>

#include <cerrno>

#include "jobs/export/atomic_file.h"

namespace arbalest::jobs {

MetricsLog::~MetricsLog() { close(file_); }

void MetricsLog::append(const char* event, const nlohmann::ordered_json& row) {
  nlohmann::ordered_json line = {{"event", event}};
  line.update(row);
  const std::string text = line.dump() + '\n';
  write_fully(file_, std::as_bytes(std::span(text)), path_);
}

std::uint64_t MetricsLog::bytes() const {
  struct stat status {};
  if (fstat(file_, &status) != 0) fail_write(path_, errno);
  return static_cast<std::uint64_t>(status.st_size);
}

void MetricsLog::cut(std::uint64_t bytes) {
  if (this->bytes() < bytes) write_fully(file_, std::as_bytes(std::span("\n", 1)), path_);
  if (this->bytes() <= bytes) return;
  if (ftruncate(file_, static_cast<off_t>(bytes)) != 0) fail_write(path_, errno);
}

void MetricsLog::sync() {
  // EINVAL: the file cannot be synced, such as a pipe.
  if (fsync(file_) != 0 && errno != EINVAL) fail_write(path_, errno);
}

}  // namespace arbalest::jobs
