#include "engine/cuda/device/library_questions.h"

#include "engine/cuda/runtime/memory.h"

namespace arbalest::engine::cuda {

LibraryQuestions::Turn LibraryQuestions::take_turn() {
  Turn turn(*this);
  ARBALEST_CUDA(cudaSetDevice(ordinal_));
  if (handles_.has_value()) return turn;
  ARBALEST_CUDA(cudaStreamCreateWithFlags(stream_.put(), cudaStreamNonBlocking));
  handles_.emplace(ordinal_, stream_.get(), gate_);
  return turn;
}

std::size_t LibraryQuestions::handle_bytes() {
  const Turn turn = take_turn();  // these handles have loaded the kernels that all handles share
  if (!handle_bytes_.has_value()) {
    const std::size_t before = driver_free_memory();
    const LibraryHandles more(ordinal_, turn.stream(), gate_);
    const std::size_t after = driver_free_memory();
    handle_bytes_ = before > after ? before - after : 0;  // another process may have freed memory
  }
  return *handle_bytes_;
}

}  // namespace arbalest::engine::cuda
