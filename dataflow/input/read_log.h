// Notes what was read from files. Processes find out by it whether their files are the same.
#pragma once

#include <atomic>
#include <cstdint>
#include <mutex>
#include <span>
#include <vector>

namespace arbalest::dataflow {

// An example that was read, with the CRC-32C of the bytes of its file or record.
struct ReadExample {
  std::uint32_t example = 0;
  std::uint32_t checksum = 0;

  bool operator==(const ReadExample&) const = default;
};

// Any number of threads may call.
class ReadLog {
 public:
  // From here on examples are noted, or no more.
  void turn(bool on) noexcept { is_on_ = on; }
  bool is_on() const noexcept { return is_on_; }
  // Notes that an example was read.
  void note(std::int64_t example, std::span<const std::uint8_t> bytes);
  // Returns what was noted since the last call, in ascending order of the examples.
  std::vector<ReadExample> take();

 private:
  std::atomic<bool> is_on_ = false;
  std::mutex mutex_;
  std::vector<ReadExample> read_;
};

}  // namespace arbalest::dataflow
