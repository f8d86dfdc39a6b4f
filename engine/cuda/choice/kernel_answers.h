// Which kernels a device takes: by which rule, the answers that were recorded, and those given so far.
#pragma once

#include <algorithm>
#include <map>
#include <mutex>
#include <optional>
#include <span>
#include <string>
#include <utility>
#include <vector>

#include "engine/kernel_choices.h"

namespace arbalest::engine::cuda {

// Any thread may call.
class KernelAnswers {
 public:
  // `must_keep`: see DeviceOptions::keeps_recorded_kernels.
  KernelAnswers(KernelSelection selection, std::span<const KernelChoice> recorded, bool must_keep)
      : selection_(selection), must_keep_(must_keep) {
    take(recorded);
  }

  KernelSelection selection() const noexcept { return selection_; }
  bool must_keep() const noexcept { return must_keep_; }

  // See Device::take_kernel_choices.
  void take(std::span<const KernelChoice> recorded) {
    const std::lock_guard lock(mutex_);
    for (const KernelChoice& choice : recorded) known_.emplace(choice.question, choice);
  }

  // The recorded answer, or the one given before.
  std::optional<KernelChoice> find(const std::string& question) const {
    const std::lock_guard lock(mutex_);
    const auto answer = known_.find(question);
    return answer == known_.end() ? std::nullopt : std::optional(answer->second);
  }

  // From now on this is the answer to its question.
  void give(KernelChoice choice) {
    const std::lock_guard lock(mutex_);
    known_.insert_or_assign(choice.question, choice);
    const bool is_given =
        std::ranges::any_of(given_, [&](const KernelChoice& earlier) { return earlier.question == choice.question; });
    if (!is_given) given_.push_back(std::move(choice));
  }

  // The answers that operators have taken, in order.
  std::vector<KernelChoice> given() const {
    const std::lock_guard lock(mutex_);
    return given_;
  }

 private:
  const KernelSelection selection_;
  const bool must_keep_;
  mutable std::mutex mutex_;
  std::map<std::string, KernelChoice> known_;
  std::vector<KernelChoice> given_;
};

}  // namespace arbalest::engine::cuda
