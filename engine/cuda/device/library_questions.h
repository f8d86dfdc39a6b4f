// The library handles of a device that queries and trials use while operators are prepared. Creating handles takes 0.1
// s, so all convolutions share these.
#pragma once

#include <cstddef>
#include <mutex>
#include <optional>

#include "engine/cuda/choice/kernel_answers.h"
#include "engine/cuda/choice/trial_stream.h"
#include "engine/cuda/runtime/library_handles.h"

namespace arbalest::engine::cuda {

class LibraryQuestions {
 public:
  // `gate`, `answers` and `trials` are the device's, and must outlive this.
  LibraryQuestions(int ordinal, CaptureGate& gate, KernelAnswers& answers, TrialStream& trials)
      : ordinal_(ordinal), gate_(gate), answers_(answers), trials_(trials) {}

  // While a Turn exists, its thread has exclusive use of the handles and their stream. The device is the current one.
  class Turn {
   public:
    cudnnHandle_t cudnn() const noexcept { return of_.handles_->cudnn(); }
    cudaStream_t stream() const noexcept { return of_.stream_.get(); }
    KernelAnswers& answers() const noexcept { return of_.answers_; }
    TrialStream& trials() const noexcept { return of_.trials_; }

   private:
    friend class LibraryQuestions;
    explicit Turn(LibraryQuestions& of) : of_(of), lock_(of.mutex_) {}

    LibraryQuestions& of_;
    std::unique_lock<std::mutex> lock_;
  };

  // The first call creates the handles. Throws kOutOfMemory if memory is short.
  Turn take_turn();

  // Device memory that one more pair of handles takes, as the driver counts it. Measured once, with a temporary pair.
  // Throws like take_turn().
  std::size_t handle_bytes();

 private:
  const int ordinal_;
  CaptureGate& gate_;
  KernelAnswers& answers_;
  TrialStream& trials_;
  std::mutex mutex_;
  Handle<cudaStream_t, cudaStreamDestroy> stream_;
  std::optional<LibraryHandles> handles_;
  std::optional<std::size_t> handle_bytes_;
};

}  // namespace arbalest::engine::cuda
