// Which kernels a device takes: by which rule, the answers that were recorded, and those given so far.
#pragma once

#include <cstddef>
#include <map>
#include <mutex>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "engine/kernel_choices.h"

namespace arbalest::engine::cuda {

// Any thread may call.
class KernelAnswers {
 public:
  // `must_keep`: see DeviceOptions::keeps_recorded_kernels.
  KernelAnswers(KernelSelection selection, std::span<const KernelChoice> recorded, bool must_keep);

  KernelSelection selection() const noexcept { return selection_; }
  bool must_keep() const noexcept { return must_keep_; }

  // See Device::take_kernel_choices.
  void take(std::span<const KernelChoice> recorded);

  // Returns the place among the candidates' names of the question's answer, which was recorded or given before. Nothing
  // if there is no answer, or if it is none of them and need not be kept; if it must be, throws kDevice.
  std::optional<std::size_t> find(const std::string& question, std::span<const std::string> candidates) const;

  // From now on this is the answer to its question.
  void give(const KernelChoice& choice);
  // Gives the answer that find() has found, with its times and its note.
  void repeat(const std::string& question);

  // The answers that operators have taken, in order.
  std::vector<KernelChoice> given() const;

 private:
  const KernelSelection selection_;
  const bool must_keep_;
  mutable std::mutex mutex_;
  std::map<std::string, KernelChoice> known_;
  std::vector<KernelChoice> given_;
};

}  // namespace arbalest::engine::cuda
