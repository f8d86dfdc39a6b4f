#include "engine/cuda/choice/kernel_answers.h"

#include <algorithm>

#include <fmt/ranges.h>

#include "engine/base/error.h"

namespace arbalest::engine::cuda {

KernelAnswers::KernelAnswers(KernelSelection selection, std::span<const KernelChoice> recorded, bool must_keep)
    : selection_(selection), must_keep_(must_keep) {
  take(recorded);
}

void KernelAnswers::take(std::span<const KernelChoice> recorded) {
  const std::lock_guard lock(mutex_);
  for (const KernelChoice& choice : recorded) known_.emplace(choice.question, choice);
}

std::optional<std::size_t> KernelAnswers::find(const std::string& question,
                                               std::span<const std::string> candidates) const {
  const std::lock_guard lock(mutex_);
  const auto known = known_.find(question);
  if (known == known_.end()) return std::nullopt;
  const std::string& answer = known->second.answer;
  const auto found = std::ranges::find(candidates, answer);
  if (found != candidates.end()) return static_cast<std::size_t>(found - candidates.begin());
  if (!must_keep_) return std::nullopt;
  fail(ErrorKind::kDevice,
       "the recorded choice of kernels for '{}' is '{}', but this program has '{}' for it; resume with the program "
       "that began the run, or set training.kernels to FIXED",
       question, answer, fmt::join(candidates, "', '"));
}

void KernelAnswers::give(const KernelChoice& choice) {
  {
    const std::lock_guard lock(mutex_);
    known_.insert_or_assign(choice.question, choice);
  }
  repeat(choice.question);
}

void KernelAnswers::repeat(const std::string& question) {
  const std::lock_guard lock(mutex_);
  if (std::ranges::find(given_, question, &KernelChoice::question) != given_.end()) return;
  given_.push_back(known_.at(question));
}

std::vector<KernelChoice> KernelAnswers::given() const {
  const std::lock_guard lock(mutex_);
  return given_;
}

}  // namespace arbalest::engine::cuda
