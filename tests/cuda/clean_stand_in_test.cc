// Errors that the listener in clean_stand_in.cc detects. These test cases pass only if they fail.
#include "tests/cuda_stand_in/stand_in.h"
#include "tests/support/catch.h"

TEST_CASE("a test that uses CUDA's libraries wrongly fails", "[!shouldfail]") {
  void* never_allocated = &never_allocated;
  CHECK(cudaFree(never_allocated) == cudaErrorInvalidValue);
}

TEST_CASE("a test that leaks a CUDA resource fails", "[!shouldfail]") {
  cudaEvent_t event = nullptr;
  CHECK(cudaEventCreateWithFlags(&event, cudaEventDisableTiming) == cudaSuccess);
}

TEST_CASE("every run of a test begins with a new stand-in") {
  static_cast<void>(GENERATE(1, 2));
  CHECK(cudaMemsetAsync(nullptr, 0, 0, cudaStreamPerThread) == cudaSuccess);
  arbalest::tests::cuda_stand_in::fail_next("cudaMemsetAsync", cudaErrorInvalidValue);
}
