// The contiguous parts of the flat vectors that the processes of a run serve: shard r is that of process r.
#pragma once

#include <algorithm>
#include <cstdint>
#include <span>
#include <vector>

#include "engine/base/element_range.h"
#include "engine/passes/weight_update.h"
#include "engine/process/operations/slices.h"
#include "sma/central_model.h"

namespace arbalest::sma {

class Shards {
 public:
  explicit Shards(const CentralSizes& sizes, int processes = 1)
      : sizes_(sizes), slices_(static_cast<std::size_t>(sizes.elements), processes, 1) {}

  // The vectors that are cut.
  const CentralSizes& whole() const noexcept { return sizes_; }
  engine::ElementRange of(int process) const {
    return {static_cast<std::int64_t>(slices_.begin(process)), static_cast<std::int64_t>(slices_.begin(process + 1))};
  }
  // The trainable elements of a shard.
  engine::ElementRange trainable_of(int process) const {
    const engine::ElementRange shard = of(process);
    return {std::min(shard.begin, sizes_.trainable()), std::min(shard.end, sizes_.trainable())};
  }
  CentralSizes sizes_of(int process) const {
    return {.elements = of(process).elements(),
            .statistics = of(process).elements() - trainable_of(process).elements()};
  }
  // The parts of `ranges` in a shard, counted from its begin.
  std::vector<engine::UpdateRange> cut(std::span<const engine::UpdateRange> ranges, int process) const {
    const engine::ElementRange shard = of(process);
    std::vector<engine::UpdateRange> parts;
    for (engine::UpdateRange range : ranges) {
      range.begin = std::max(range.begin, shard.begin) - shard.begin;
      range.end = std::min(range.end, shard.end) - shard.begin;
      if (range.begin < range.end) parts.push_back(range);
    }
    return parts;
  }

 private:
  CentralSizes sizes_;
  engine::process::Slices slices_;
};

}  // namespace arbalest::sma
