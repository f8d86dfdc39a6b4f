#include "engine/cuda/choice/kernel_chooser.h"

#include <algorithm>
#include <utility>

#include "engine/base/error.h"
#include "engine/cuda/choice/kernel_trial.h"

namespace arbalest::engine::cuda {

namespace {

std::string names_of(std::span<const KernelMaker> candidates) {
  std::string names;
  for (const KernelMaker& candidate : candidates) {
    names += fmt::format("{}'{}'", names.empty() ? "" : ", ", candidate.name);
  }
  return names;
}

}  // namespace

KernelChooser::KernelChooser(const Options& options, CaptureGate& gate, ChoiceList& choices)
    : device_(options.device),
      ordinal_(options.ordinal),
      selection_(options.selection),
      gate_(gate),
      choices_(choices) {
  take(options.recorded);
}

void KernelChooser::take(std::span<const KernelChoice> recorded) {
  const std::lock_guard lock(mutex_);
  for (const KernelChoice& choice : recorded) answers_.emplace(choice.question, choice);
}

void KernelChooser::end_trials() {
  const std::lock_guard lock(mutex_);
  stream_.reset();
}

std::unique_ptr<Operator> KernelChooser::choose(const Question& question, std::span<const KernelMaker> candidates) {
  const std::lock_guard lock(mutex_);
  if (const auto answer = answers_.find(question.text); answer != answers_.end()) {
    std::unique_ptr<Operator> op = make_recorded(answer->second, candidates);
    choices_.add(answer->second);
    return op;
  }
  if (candidates.size() == 1) return candidates.front().make();
  KernelChoice choice{.question = question.text, .answer = candidates.front().name};
  std::unique_ptr<Operator> op =
      selection_ == KernelSelection::kTimed ? time(question, candidates, choice) : candidates.front().make();
  answers_[question.text] = choice;
  choices_.add(std::move(choice));
  return op;
}

std::unique_ptr<Operator> KernelChooser::make_recorded(const KernelChoice& answer,
                                                       std::span<const KernelMaker> candidates) const {
  const auto chosen = std::ranges::find(candidates, answer.answer, &KernelMaker::name);
  if (chosen == candidates.end()) {
    fail(ErrorKind::kDevice,
         "the recorded choice of kernels for '{}' is '{}', but this program has {} for it; resume with the program "
         "that began the run, or set training.kernels to FIXED",
         answer.question, answer.answer, names_of(candidates));
  }
  return chosen->make();
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
      const double microseconds = time(question, *op);
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
  stream_.reset();
  choice = {.question = question.text,
            .answer = candidates.front().name,
            .note = "not timed, because memory for a trial was short"};
  return candidates.front().make();
}

double KernelChooser::time(const Question& question, const Operator& op) {
  return time_operator(op, question.input, question.options, stream_for(question.options.replicas));
}

CudaStream& KernelChooser::stream_for(int replicas) {
  if (stream_ != nullptr && stream_replicas_ >= replicas) return *stream_;
  stream_.reset();
  stream_ = std::make_unique<CudaStream>(
      CudaStream::Options{.name = device_ + " kernel trial", .ordinal = ordinal_, .replicas = replicas}, gate_);
  stream_replicas_ = replicas;
  return *stream_;
}

}  // namespace arbalest::engine::cuda
