// Replaces the header of the same path, which is written in PTX.
#pragma once

#include <cstddef>

#include "tests/cuda_stand_in/async_copies.h"

namespace arbalest::engine::cuda {

template <int kBytes>
void copy_async(void* shared, const void* global, int line = __builtin_LINE()) {
  static_assert(kBytes == 4 || kBytes == 16);
  tests::cuda_stand_in::begin_copy(shared, global, std::size_t{kBytes}, line);
}

inline void commit_copies() { tests::cuda_stand_in::commit_copies(); }

template <int kPending>
void wait_for_copies() {
  tests::cuda_stand_in::wait_for_copies(std::size_t{kPending});
}

}  // namespace arbalest::engine::cuda
