// The library handles of a device that answer questions and make trials while operators are prepared. Creating handles
// takes a tenth of a second, so convolutions share these.
#pragma once

#include <cstddef>
#include <mutex>
#include <optional>
#include <string>
#include <vector>

#include "engine/cuda/device/library_handles.h"

namespace arbalest::engine::cuda {

class LibraryQuestions {
 public:
  LibraryQuestions(int ordinal, CaptureGate& gate) : ordinal_(ordinal), gate_(gate) {}

  // While it lives, the calling thread has the handles and their stream for itself. The device is the current one.
  class Turn {
   public:
    cudnnHandle_t cudnn() const noexcept { return of_.handles_->cudnn(); }
    cudaStream_t stream() const noexcept { return of_.stream_.get(); }
    // Keeps a line for choices().
    void note_choice(std::string line) const;

   private:
    friend class LibraryQuestions;
    explicit Turn(LibraryQuestions& of) : of_(of), lock_(of.mutex_) {}

    LibraryQuestions& of_;
    std::unique_lock<std::mutex> lock_;
  };

  // The first turn creates the handles. Throws kOutOfMemory where memory is short.
  Turn take_turn();

  // Device memory that one more pair of handles takes, as the driver counts it: measured once, with a pair that exists
  // for the moment. Throws as take_turn().
  std::size_t handle_bytes();

  // The choices noted so far, each line once, in the order of its first note.
  std::vector<std::string> choices();

 private:
  const int ordinal_;
  CaptureGate& gate_;
  std::mutex mutex_;
  Handle<cudaStream_t, cudaStreamDestroy> stream_;
  std::optional<LibraryHandles> handles_;
  std::optional<std::size_t> handle_bytes_;
  std::vector<std::string> choices_;
};

}  // namespace arbalest::engine::cuda
