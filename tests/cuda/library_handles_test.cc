// Handles of cuDNN and cuBLAS: memory that is short, and captures that other threads make.
#include <chrono>
#include <memory>
#include <string_view>
#include <thread>

#include "engine/devices.h"
#include "engine/error.h"
#include "engine/stream_observer.h"
#include "tests/cuda_stand_in/stand_in.h"
#include "tests/support/catch.h"

#include <cudnn.h>

namespace arbalest::tests {
namespace {

using Catch::Matchers::Contains;
using engine::ErrorKind;

constexpr std::size_t kMiB = std::size_t{1} << 20U;
constexpr std::size_t kGraphRoom = 2 * kMiB;  // of the forecast, for a learner's recordings

std::unique_ptr<engine::Device> open_gpu(const engine::DeviceOptions& options = {}) {
  return engine::open_device(engine::parse_device("cuda:0"), options);
}

struct Failure {
  ErrorKind kind = ErrorKind::kInternal;
  std::string message = "no error";
};

Failure failure_of_new_stream(engine::Device& device) {
  try {
    static_cast<void>(device.create_stream({.name = "learner 0"}));
  } catch (const engine::Error& error) {
    return {error.kind(), error.what()};
  }
  return {};
}

// Destroys a stream, on a thread of its own, as soon as another one is being captured.
class DestroyingObserver final : public engine::StreamObserver {
 public:
  ~DestroyingObserver() override { join(); }

  // The stream must go before its device.
  void join() {
    if (thread_.joinable()) thread_.join();
  }

  void before_task(const engine::Stream&, const char* label) override {
    if (std::string_view(label) != "captured" || victim == nullptr) return;
    const std::uint64_t before = cuda_stand_in::calls("cudnnDestroy");
    thread_ = std::thread([stream = std::move(victim)]() mutable { stream.reset(); });
    // Long enough for a destruction that nothing holds back.
    constexpr int kLooks = 2000;
    for (int i = 0; i < kLooks && cuda_stand_in::calls("cudnnDestroy") == before; ++i) {
      std::this_thread::sleep_for(std::chrono::microseconds(50));
    }
  }
  void after_task(const engine::Stream&, const char*) override {}

  std::unique_ptr<engine::Stream> victim;

 private:
  std::thread thread_;
};

}  // namespace

TEST_CASE("memory that the pool keeps for nobody is there for handles") {
  cuda_stand_in::reset({.memory = 64 * kMiB});
  const auto device = open_gpu();
  device->allocate(62 * kMiB);  // and frees it
  const auto stream = device->create_stream({.name = "learner 0"});
  CHECK(cuda_stand_in::calls("cudaMemPoolTrimTo") == 1);
}

TEST_CASE("a handle for which there is no memory is out of memory, whatever the library calls it") {
  for (std::uint64_t seed = 1; seed <= 10; ++seed) {
    CAPTURE(seed);
    for (const std::size_t left : {33 * kMiB, 35 * kMiB}) {  // the workspace takes 32
      cuda_stand_in::reset({.memory = 64 * kMiB}, seed);
      const auto device = open_gpu();
      const engine::Buffer taken = device->allocate(64 * kMiB - left);
      const std::size_t before = device->free_memory();
      const Failure failure = failure_of_new_stream(*device);
      CHECK(failure.kind == ErrorKind::kOutOfMemory);
      CHECK_THAT(failure.message, Contains(left == 33 * kMiB ? "cuda:0: cudnnCreate: " : "cuda:0: cublasCreate: ") &&
                                      Contains("MiB of device memory left"));
      CHECK(device->free_memory() == before);
    }
  }
}

TEST_CASE("a handle that fails with much memory left is a failing device") {
  const auto device = open_gpu();
  cuda_stand_in::fail_next("cudnnCreate", CUDNN_STATUS_INTERNAL_ERROR);
  const Failure failure = failure_of_new_stream(*device);
  CHECK(failure.kind == ErrorKind::kDevice);
  CHECK_THAT(failure.message, Contains("cudnnCreate: "));
}

TEST_CASE("what a stream takes of a GPU, handles included, is what was forecast") {
  const auto device = open_gpu();
  for (const bool floating : {false, true}) {
    const engine::StreamOptions options{.name = "stream", .floating = floating};
    const std::size_t forecast = device->stream_bytes(options);
    const std::size_t before = device->free_memory();
    const auto stream = device->create_stream(options);
    CHECK(before - device->free_memory() == forecast - (floating ? 0 : kGraphRoom));
  }
}

TEST_CASE("a stream does not go while another one of its device is being captured") {
  DestroyingObserver observer;
  const auto device = open_gpu({.observer = &observer});
  const engine::Buffer buffer = device->allocate(4);
  const auto stream = device->create_stream({.name = "learner 0"});
  observer.victim = device->create_stream({.name = "learner 1"});
  stream->begin_recording();
  stream->fill_zero(buffer.data(), 4, "captured");
  const auto graph = stream->end_recording();
  observer.join();
  CHECK(observer.victim == nullptr);
  CHECK(cuda_stand_in::calls("cudnnDestroy") == 1);
  CHECK(cuda_stand_in::violations().empty());
}

}  // namespace arbalest::tests
