#include "sma/copy_comparison.h"

#include <algorithm>
#include <numeric>

#include "engine/base/error.h"
#include "engine/stream.h"

namespace arbalest::sma {

std::vector<std::size_t> faulty_devices(const CopyHashes& hashes) {
  std::vector<std::size_t> faulty;
  for (std::size_t d = 0; d < hashes.size(); ++d) {
    const auto differs = [&](std::uint64_t hash) { return hash != hashes[d].front(); };
    if (std::ranges::any_of(hashes[d], differs)) faulty.push_back(d);
  }
  if (!faulty.empty()) return faulty;
  const auto holders_of = [&](std::uint64_t hash) {
    return static_cast<std::size_t>(
        std::ranges::count_if(hashes, [&](const auto& of_device) { return of_device.front() == hash; }));
  };
  for (std::size_t d = 0; d < hashes.size(); ++d) {
    if (2 * holders_of(hashes[d].front()) <= hashes.size()) faulty.push_back(d);
  }
  return faulty;
}

CopyComparison::CopyComparison(std::span<engine::Device* const> devices, int copies, int result_slots,
                               std::size_t ranges)
    : copies_(static_cast<std::size_t>(copies)),
      slots_(static_cast<std::size_t>(result_slots)),
      ranges_(ranges),
      taken_hashes_(devices.size()) {
  for (engine::Device* device : devices) {
    PerDevice& entry = devices_.emplace_back();
    entry.hashes = device->allocate(copies_ * ranges_ * sizeof(std::uint64_t));
    entry.results = device->allocate_host(slots_ * copies_ * ranges_ * sizeof(std::uint64_t));
    entry.done.resize(slots_);
  }
}

void CopyComparison::enqueue(std::span<engine::Stream* const> streams,
                             std::span<const std::vector<const float*>> copies,
                             std::span<const engine::ElementRange> ranges) {
  ARBALEST_CHECK(streams.size() == devices_.size() && copies.size() == devices_.size() && ranges.size() == ranges_);
  for (std::size_t d = 0; d < devices_.size(); ++d) {
    PerDevice& entry = devices_[d];
    const std::size_t count = copies[d].size();
    ARBALEST_CHECK(count > 0 && count <= copies_);
    taken_hashes_[d].resize(count);
    auto* hashes = entry.hashes.as<std::uint64_t>();
    for (std::size_t j = 0; j < count; ++j) {
      for (std::size_t r = 0; r < ranges_; ++r) {
        streams[d]->enqueue(engine::VectorHash{copies[d][j] + ranges[r].begin, ranges[r].end - ranges[r].begin,
                                               hashes + j * ranges_ + r},
                            "compare copies");
      }
    }
    auto* results = entry.results.as<std::uint64_t>() + slot(enqueued_) * copies_ * ranges_;
    entry.done[slot(enqueued_)] =
        streams[d]->deliver(results, hashes, count * ranges_ * sizeof(std::uint64_t), "hashes of the copies");
  }
  ++enqueued_;
}

const CopyHashes& CopyComparison::take(const std::function<void(const engine::Event&)>& wait) {
  ARBALEST_CHECK(taken_ < enqueued_);
  for (std::size_t d = 0; d < devices_.size(); ++d) {
    wait(devices_[d].done[slot(taken_)]);
    const auto* results = devices_[d].results.as<std::uint64_t>() + slot(taken_) * copies_ * ranges_;
    for (std::uint64_t& hash : taken_hashes_[d]) {
      hash = std::accumulate(results, results + ranges_, std::uint64_t{0});
      results += ranges_;
    }
  }
  ++taken_;
  return taken_hashes_;
}

}  // namespace arbalest::sma
