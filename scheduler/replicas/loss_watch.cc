#include "scheduler/replicas/loss_watch.h"

#include <algorithm>
#include <array>

namespace arbalest::scheduler {

LossWatch::LossWatch(const SpikeRule& rule) : rule_(rule) { history_.recent.reserve(kReference + 1); }

void LossWatch::continue_from(const LossHistory& history) {
  history_ = history;
  history_.recent.reserve(kReference + 1);
}

std::optional<LossSpike> LossWatch::add(std::uint64_t number, std::int64_t examples, double loss_sum) {
  ++history_.batches;
  history_.examples += examples;
  history_.loss_sum += loss_sum;
  if (history_.batches < rule_.window_batches || history_.examples < rule_.window_examples) return std::nullopt;
  const double mean = history_.loss_sum / static_cast<double>(history_.examples);
  const std::uint64_t begin = number + 1 - static_cast<std::uint64_t>(history_.batches);
  history_.batches = 0;
  history_.examples = 0;
  history_.loss_sum = 0.0;
  if (!history_.first) history_.first = mean;
  return judge(begin, mean);
}

std::optional<LossSpike> LossWatch::judge(std::uint64_t begin, double mean) {
  std::vector<double>& recent = history_.recent;
  if (begin >= rule_.first_batch && recent.size() == kReference) {
    std::array<double, kReference> sorted{};
    std::ranges::copy(recent, sorted.begin());
    std::ranges::sort(sorted);
    const double usual = sorted[kReference / 2];
    if (mean > rule_.factor * usual && mean > *history_.first / 2.0) {
      if (++history_.high_windows < kHighWindows) return std::nullopt;
      return LossSpike{mean, usual};
    }
  }
  history_.high_windows = 0;
  recent.push_back(mean);
  if (recent.size() > kReference) recent.erase(recent.begin());
  return std::nullopt;
}

}  // namespace arbalest::scheduler
