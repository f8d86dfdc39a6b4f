// Compares vectors that must be equal on all devices, by hash and while the run trains: copies of the central model, or
// the replicas of s_sgd. A difference means that memory, a transfer or a device is faulty.
#pragma once

#include <cstddef>
#include <cstdint>
#include <functional>
#include <span>
#include <vector>

#include "engine/base/element_range.h"
#include "engine/device.h"
#include "engine/passes/vector_hash.h"

namespace arbalest::sma {

// The hashes of one comparison: by device, then by copy on the device. At least one copy on each device.
using CopyHashes = std::vector<std::vector<std::uint64_t>>;

// The devices whose copies are wrong, ascending; none if all copies are equal. A device whose own copies differ is
// wrong. If there is none, the devices are wrong that differ from more than half of all devices. Without such a
// majority, as with two devices, any device may be wrong, and all are returned.
std::vector<std::size_t> faulty_devices(const CopyHashes& hashes);

class CopyComparison {
 public:
  // Bytes that a CopyComparison takes of each device's memory. `copies`: the most copies on one device. `ranges`: of
  // elements that are compared.
  static std::size_t device_bytes(int copies, std::size_t ranges = 1) {
    return static_cast<std::size_t>(copies) * ranges * sizeof(std::uint64_t);
  }

  // The devices must outlive it. result_slots: comparisons that may be under way.
  CopyComparison(std::span<engine::Device* const> devices, int copies, int result_slots, std::size_t ranges = 1);

  // Enqueues a comparison of these elements of copies[d] on each device's stream, at a point where they
  // are final; they must stay until the enqueued work has passed. Allocates only if there are more devices or copies
  // than ever before.
  void enqueue(std::span<engine::Stream* const> streams, std::span<const std::vector<const float*>> copies,
               std::span<const engine::ElementRange> ranges);
  // Returns the oldest comparison that was not taken yet; valid until the next call. wait(event) must block the host
  // until `event` has passed.
  const CopyHashes& take(const std::function<void(const engine::Event&)>& wait);
  // Forgets the comparisons that were not taken. The streams must be idle.
  void forget() { taken_ = enqueued_; }

 private:
  struct PerDevice {
    engine::Buffer hashes;            // [copies_, ranges_]
    engine::Buffer results;           // host: [slots_, copies_, ranges_]
    std::vector<engine::Event> done;  // by slot
  };

  std::size_t slot(std::uint64_t comparison) const { return comparison % slots_; }

  std::size_t copies_;
  std::size_t slots_;
  std::size_t ranges_;
  std::vector<PerDevice> devices_;
  CopyHashes taken_hashes_;
  std::uint64_t enqueued_ = 0;
  std::uint64_t taken_ = 0;
};

}  // namespace arbalest::sma
