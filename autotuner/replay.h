// The resizes of a run, recorded so that they can be made again: the same job with the same schedule trains to the same
// bytes, whatever the clock says.
#pragma once

#include <cstdint>
#include <optional>
#include <vector>

#include "autotuner/configuration.h"

namespace arbalest::autotuner {

struct Resize {
  std::uint64_t batches = 0;      // mini-batches enqueued since the start of the run, at an averaging point
  std::vector<Configuration> to;  // by kind of device; what the run begins with, if batches is 0

  bool operator==(const Resize&) const = default;
};

// Who calls what: a run that is tuned appends to its record what it begins with and every resize that worked. A run
// that replays asks next() how far it may go, and makes the resize that due() then returns.
class Replay {
 public:
  // Throws std::invalid_argument unless the schedule begins at 0, `batches` ascends and every count is at least 1.
  explicit Replay(std::vector<Resize> schedule);

  // Where the next resize is made; none if there are no more.
  std::optional<std::uint64_t> next() const;
  // The resize to make at `batches`, which then counts as made; none if the next one is later. Throws
  // std::logic_error if the run went past it.
  std::optional<Resize> due(std::uint64_t batches);

 private:
  std::vector<Resize> schedule_;
  std::size_t made_ = 0;
};

}  // namespace arbalest::autotuner
