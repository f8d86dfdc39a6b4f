// The mini-batches of a sequence that one process of a run takes.
#pragma once

#include <algorithm>
#include <cstdint>

namespace arbalest::dataflow {

// A process takes `count` of every `all` mini-batches in a row: those that follow the first `first`. If too few follow,
// it takes the first ones of the row, too. The default is the whole sequence.
struct BatchShare {
  int first = 0;
  int count = 1;
  int all = 1;

  bool operator==(const BatchShare&) const = default;

  // The share of the process whose place is `places` further on in the row.
  BatchShare moved(std::uint64_t places) const noexcept {
    const auto together = static_cast<std::uint64_t>(all);
    const auto place = static_cast<std::uint64_t>(first) + places % together;
    return {static_cast<int>(place % together), count, all};
  }

  // The number of the mini-batch at a position of this share. Positions and numbers begin with 0, and both ascend.
  std::uint64_t number_at(std::uint64_t position) const noexcept {
    const auto taken = static_cast<std::uint64_t>(count);
    const std::uint64_t place = position % taken;
    return position / taken * static_cast<std::uint64_t>(all) + (place < wrapped() ? place : place + skipped());
  }
  // The position of mini-batch `number`, which must be one of the share.
  std::uint64_t position_of(std::uint64_t number) const noexcept {
    const auto together = static_cast<std::uint64_t>(all);
    const std::uint64_t place = number % together;
    return number / together * static_cast<std::uint64_t>(count) + (place < wrapped() ? place : place - skipped());
  }
  // Returns the number of the first `numbers` mini-batches that the share has.
  std::uint64_t among(std::uint64_t numbers) const noexcept {
    const auto together = static_cast<std::uint64_t>(all);
    const std::uint64_t rest = numbers % together;
    const std::uint64_t behind = std::max(rest, wrapped() + skipped()) - skipped() - wrapped();
    const auto taken = static_cast<std::uint64_t>(count);
    return numbers / together * taken + std::min(rest, wrapped()) + std::min(behind, taken - wrapped());
  }

 private:
  // How many mini-batches of a row the share has at its beginning, because too few follow `first`.
  std::uint64_t wrapped() const noexcept { return static_cast<std::uint64_t>(std::max(0, first + count - all)); }
  // How many mini-batches of others lie behind those.
  std::uint64_t skipped() const noexcept { return static_cast<std::uint64_t>(first) - wrapped(); }
};

}  // namespace arbalest::dataflow
