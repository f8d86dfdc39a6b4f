// Streams of the stand-in.
#pragma once

#include <memory>

#include "tests/cuda_stand_in/state.h"

namespace arbalest::tests::cuda_stand_in {

CUstream_st* make_stream(int device, bool blocking, int priority);
// Adds work at the end of the queue, even during a capture.
void append(CUstream_st& stream, std::shared_ptr<const Work> work);
// Runs until all work of the stream is done.
cudaError_t drain(const CUstream_st& stream, const char* function);

}  // namespace arbalest::tests::cuda_stand_in
