#include "autotuner/replay.h"

#include <algorithm>
#include <stdexcept>
#include <utility>

#include <fmt/format.h>

namespace arbalest::autotuner {

Replay::Replay(std::vector<Resize> schedule) : schedule_(std::move(schedule)) {
  if (schedule_.empty() || schedule_.front().batches != 0) {
    throw std::invalid_argument("a schedule of resizes begins with the counts at mini-batch 0");
  }
  for (std::size_t i = 0; i < schedule_.size(); ++i) {
    const Resize& resize = schedule_[i];
    if (i > 0 && resize.batches <= schedule_[i - 1].batches) {
      throw std::invalid_argument(fmt::format("resizes at mini-batches {} and then {} do not follow each other",
                                              schedule_[i - 1].batches, resize.batches));
    }
    const bool sound = std::ranges::all_of(
        resize.to, [](const Configuration& count) { return count.learners >= 1 && count.threads >= 1; });
    if (resize.to.empty() || !sound || resize.to.size() != schedule_.front().to.size()) {
      throw std::invalid_argument(
          fmt::format("the resize at mini-batch {} needs one positive count per kind of device", resize.batches));
    }
  }
}

std::optional<std::uint64_t> Replay::next() const {
  return made_ < schedule_.size() ? std::optional(schedule_[made_].batches) : std::nullopt;
}

std::optional<Resize> Replay::due(std::uint64_t batches) {
  if (made_ == schedule_.size() || batches < schedule_[made_].batches) return std::nullopt;
  if (batches > schedule_[made_].batches) {
    throw std::logic_error(fmt::format("the run went to mini-batch {}, past the resize recorded at {}", batches,
                                       schedule_[made_].batches));
  }
  return schedule_[made_++];
}

}  // namespace arbalest::autotuner
