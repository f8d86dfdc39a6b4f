#include "engine/cuda/choice/kernel_chooser.h"

#include <cstddef>
#include <optional>
#include <utility>
#include <vector>

#include <fmt/format.h>

#include "engine/base/error.h"
#include "engine/cuda/choice/kernel_trial.h"

namespace arbalest::engine::cuda {

std::unique_ptr<Operator> KernelChooser::choose(const Question& question, std::span<const KernelMaker> candidates) {
  const std::lock_guard lock(mutex_);
  std::vector<std::string> names;
  for (const KernelMaker& candidate : candidates) names.push_back(candidate.name);
  if (const std::optional<std::size_t> place = answers_.find(question.text, names)) {
    std::unique_ptr<Operator> op = candidates[*place].make();
    answers_.repeat(question.text);
    return op;
  }
  if (candidates.size() == 1) return candidates.front().make();
  KernelChoice choice{.question = question.text, .answer = candidates.front().name};
  std::unique_ptr<Operator> op =
      answers_.selection() == KernelSelection::kTimed ? time(question, candidates, choice) : candidates.front().make();
  answers_.give(choice);
  return op;
}

std::unique_ptr<Operator> KernelChooser::time(const Question& question, std::span<const KernelMaker> candidates,
                                              KernelChoice& choice) {
  std::unique_ptr<Operator> fastest;
  double least = 0.0;
  try {
    for (const KernelMaker& candidate : candidates) {
      const bool is_of_rule = &candidate == &candidates.front();
      std::unique_ptr<Operator> op;
      try {
        op = candidate.make();
      } catch (const Error& error) {
        if (is_of_rule || error.kind() != ErrorKind::kDevice) throw;
        choice.note = fmt::format("{} cannot be made: {}", candidate.name, error.what());
        continue;
      }
      const double microseconds = trials_.run(question.options.replicas, [&](CudaStream& stream) {
        return time_operator(*op, question.input, question.options, stream);
      });
      choice.candidates.push_back({candidate.name, microseconds});
      if (!is_of_rule && microseconds >= least) continue;
      fastest = std::move(op);
      least = microseconds;
      choice.answer = candidate.name;
    }
    return fastest;
  } catch (const Error& error) {
    if (error.kind() != ErrorKind::kOutOfMemory) {
      throw Error(error.kind(), fmt::format("timing kernels for '{}': {}", question.text, error.what()));
    }
  }
  fastest.reset();
  trials_.end();
  choice = {.question = question.text,
            .answer = candidates.front().name,
            .note = "not timed, because memory for a trial was short"};
  return candidates.front().make();
}

}  // namespace arbalest::engine::cuda
