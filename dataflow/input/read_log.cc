#include "dataflow/input/read_log.h"

#include <algorithm>
#include <utility>

#include "dataflow/input/formats/records/crc32c.h"

namespace arbalest::dataflow {

void ReadLog::note(std::int64_t example, std::span<const std::uint8_t> bytes) {
  const ReadExample read{static_cast<std::uint32_t>(example), crc32c(bytes)};
  const std::lock_guard lock(mutex_);
  read_.push_back(read);
}

std::vector<ReadExample> ReadLog::take() {
  std::vector<ReadExample> taken;
  {
    const std::lock_guard lock(mutex_);
    taken = std::exchange(read_, {});
  }
  std::ranges::sort(taken, {}, &ReadExample::example);
  return taken;
}

}  // namespace arbalest::dataflow
