// The mini-batches of a sequence that one process of a run takes.
#pragma once

#include <cstdint>

namespace arbalest::dataflow {

// A process takes `count` of every `all` mini-batches in a row: those that follow the first `first`. The default is the
// whole sequence.
struct BatchShare {
  int first = 0;
  int count = 1;
  int all = 1;

  bool operator==(const BatchShare&) const = default;

  // The number of the mini-batch at a position of this share. Positions and numbers begin with 0.
  std::uint64_t number_at(std::uint64_t position) const noexcept {
    const auto taken = static_cast<std::uint64_t>(count);
    return position / taken * static_cast<std::uint64_t>(all) + static_cast<std::uint64_t>(first) + position % taken;
  }
  // The position of mini-batch `number`, which must be one of the share.
  std::uint64_t position_of(std::uint64_t number) const noexcept {
    const auto together = static_cast<std::uint64_t>(all);
    return number / together * static_cast<std::uint64_t>(count) + number % together -
           static_cast<std::uint64_t>(first);
  }
  // Returns the number of the first `numbers` mini-batches that the share has.
  std::uint64_t among(std::uint64_t numbers) const noexcept {
    const auto together = static_cast<std::uint64_t>(all);
    const std::uint64_t rest = numbers % together;
    const auto before = static_cast<std::uint64_t>(first);
    const std::uint64_t behind = rest > before ? rest - before : 0;
    const auto taken = static_cast<std::uint64_t>(count);
    return numbers / together * taken + (behind < taken ? behind : taken);
  }
};

}  // namespace arbalest::dataflow
