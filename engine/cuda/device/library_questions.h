// The library handles of a device that queries and trials use while operators are prepared. Creating handles takes 0.1
// s, so all convolutions share these.
#pragma once

#include <cstddef>
#include <mutex>
#include <optional>
#include <utility>

#include "engine/cuda/choice/choice_list.h"
#include "engine/cuda/runtime/library_handles.h"

namespace arbalest::engine::cuda {

class LibraryQuestions {
 public:
  // `gate` and `choices` are the device's, and must outlive this.
  LibraryQuestions(int ordinal, CaptureGate& gate, ChoiceList& choices)
      : ordinal_(ordinal), gate_(gate), choices_(choices) {}

  // While a Turn exists, its thread has exclusive use of the handles and their stream. The device is the current one.
  class Turn {
   public:
    cudnnHandle_t cudnn() const noexcept { return of_.handles_->cudnn(); }
    cudaStream_t stream() const noexcept { return of_.stream_.get(); }
    void note_choice(KernelChoice choice) const { of_.choices_.add(std::move(choice)); }

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
  ChoiceList& choices_;
  std::mutex mutex_;
  Handle<cudaStream_t, cudaStreamDestroy> stream_;
  std::optional<LibraryHandles> handles_;
  std::optional<std::size_t> handle_bytes_;
};

}  // namespace arbalest::engine::cuda
