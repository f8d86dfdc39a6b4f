// Chooses the kernels of operators that several may compute. Operators do not know of it.
#pragma once

#include <functional>
#include <map>
#include <memory>
#include <mutex>
#include <span>
#include <string>

#include "engine/cuda/choice/choice_list.h"
#include "engine/cuda/runtime/library_handles.h"
#include "engine/cuda/runtime/stream.h"
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
  struct Options {
    std::string device;  // its name
    int ordinal = 0;
    KernelSelection selection = KernelSelection::kFixed;
    std::span<const KernelChoice> recorded = {};
  };
  struct Question {
    std::string text;  // kernel_questions.h
    const Layout& input;
    const PrepareOptions& options;
  };

  // `gate` and `choices` are the device's, and must outlive the chooser.
  KernelChooser(const Options& options, CaptureGate& gate, ChoiceList& choices);

  // Returns the operator that the chosen candidate makes, and adds the choice to the list. candidates.front() is the
  // rule's. The first of these decides:
  // - an answer given before, or a recorded one: throws kDevice if no candidate has its name;
  // - kFixed, or a single candidate: the rule's;
  // - kTimed: the fastest in a trial (kernel_trial.h); of equally fast ones the first. If memory for a trial is short,
  //   the rule's; the choice notes that. A candidate other than the rule's that cannot be made is none.
  // The device must be the current one. Trials block the host. Throws what the candidates' makers throw, and kDevice
  // if a trial fails. Any thread may call.
  std::unique_ptr<Operator> choose(const Question& question, std::span<const KernelMaker> candidates);

  // See Device::take_kernel_choices.
  void take(std::span<const KernelChoice> recorded);

  // Frees the stream of trials, which the next trial would make again: 32 MiB, and the libraries' handles.
  void end_trials();

 private:
  std::unique_ptr<Operator> make_recorded(const KernelChoice& answer, std::span<const KernelMaker> candidates) const;
  std::unique_ptr<Operator> time(const Question& question, std::span<const KernelMaker> candidates,
                                 KernelChoice& choice);
  double time(const Question& question, const Operator& op);
  CudaStream& stream_for(int replicas);

  const std::string device_;
  const int ordinal_;
  const KernelSelection selection_;
  CaptureGate& gate_;
  ChoiceList& choices_;
  std::mutex mutex_;
  std::map<std::string, KernelChoice> answers_;  // recorded or given
  std::unique_ptr<CudaStream> stream_;           // of trials; null: none is there
  int stream_replicas_ = 0;
};

}  // namespace arbalest::engine::cuda
