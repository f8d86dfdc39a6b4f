// The kernels that a device has chosen so far.
#pragma once

#include <algorithm>
#include <mutex>
#include <utility>
#include <vector>

#include "engine/kernel_choices.h"

namespace arbalest::engine::cuda {

// Any thread may call.
class ChoiceList {
 public:
  // Does nothing if the list has this answer to the question.
  void add(KernelChoice choice) {
    const std::lock_guard lock(mutex_);
    const bool is_known = std::ranges::any_of(choices_, [&](const KernelChoice& known) {
      return known.question == choice.question && known.answer == choice.answer;
    });
    if (!is_known) choices_.push_back(std::move(choice));
  }
  std::vector<KernelChoice> all() const {
    const std::lock_guard lock(mutex_);
    return choices_;
  }

 private:
  mutable std::mutex mutex_;
  std::vector<KernelChoice> choices_;
};

}  // namespace arbalest::engine::cuda
