// Chooses the kernels of operators that several may compute. Operators do not know of it.
#pragma once

#include <functional>
#include <memory>
#include <mutex>
#include <span>
#include <string>

#include "engine/cuda/choice/kernel_answers.h"
#include "engine/cuda/choice/trial_stream.h"
#include "engine/kernel_choices.h"
#include "engine/operator.h"

namespace arbalest::engine::cuda {

// Kernels that may compute an operator.
struct KernelMaker {
  std::string name;
  std::function<std::unique_ptr<Operator>()> make;
};

// Names that are parts of recorded choices: never change them.
inline constexpr const char* kOwnProduct = "own tiled product";
inline constexpr const char* kLibrary = "library";

class KernelChooser {
 public:
  struct Question {
    std::string text;  // kernel_questions.h
    const Layout& input;
    const PrepareOptions& options;
  };

  // Both are the device's, and must outlive the chooser.
  KernelChooser(KernelAnswers& answers, TrialStream& trials) : answers_(answers), trials_(trials) {}

  // Returns the operator that the chosen candidate makes, and gives the answer. candidates.front() is the
  // rule's. The first of these decides:
  // - an answer given before, or a recorded one: if no candidate has its name, throws kDevice, or goes on if answers
  // may
  //   be left (KernelAnswers::must_keep);
  // - kFixed, or a single candidate: the rule's;
  // - kTimed: the fastest in a trial (kernel_trial.h); of equally fast ones the first. If memory for a trial is short,
  //   the rule's; the choice notes that. A candidate other than the rule's that cannot be made is none.
  // The device must be the current one. Trials block the host. Throws what the candidates' makers throw, and kDevice
  // if a trial fails. Any thread may call.
  std::unique_ptr<Operator> choose(const Question& question, std::span<const KernelMaker> candidates);

 private:
  std::unique_ptr<Operator> time(const Question& question, std::span<const KernelMaker> candidates,
                                 KernelChoice& choice);

  KernelAnswers& answers_;
  TrialStream& trials_;
  std::mutex mutex_;  // while a question is answered
};

}  // namespace arbalest::engine::cuda
