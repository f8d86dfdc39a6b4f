#include "train/context/accuracy_target.h"

#include <algorithm>

#include <fmt/format.h>

#include "messages/text.h"

namespace arbalest::jobs {

std::string to_string(const HeldAccuracy& held, double target) {
  const std::string accuracy = percent(held.accuracy, target);
  if (held.evaluations == 1) return fmt::format("the one evaluation gave {}", accuracy);
  return fmt::format("the lower median of the last {} evaluations is {}", held.evaluations, accuracy);
}

bool AccuracyTarget::add(double accuracy) {
  constexpr std::size_t kWindow = 5;
  last_.push_back(accuracy);
  if (last_.size() > kWindow) last_.erase(last_.begin());
  return is_reached();
}

bool AccuracyTarget::is_reached() const {
  const std::optional<HeldAccuracy> present = held();
  return target_ && present && present->accuracy >= *target_;
}

std::optional<HeldAccuracy> AccuracyTarget::held() const {
  if (last_.empty()) return std::nullopt;
  std::vector<double> sorted = last_;
  std::ranges::sort(sorted);
  return HeldAccuracy{sorted[(sorted.size() - 1) / 2], static_cast<int>(sorted.size())};
}

}  // namespace arbalest::jobs
