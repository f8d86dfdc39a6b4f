#include "jobs/report/metrics_log.h"

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

void MetricsLog::sync() {
  // EINVAL: the file cannot be synced, such as a pipe.
  if (fsync(file_) != 0 && errno != EINVAL) fail_write(path_, errno);
}

}  // namespace arbalest::jobs
