// Handles of cuDNN and cuBLAS: lack of memory, and captures in other threads.
#include <chrono>
#include <memory>
#include <string_view>
#include <thread>

#include "engine/backends/devices.h"
#include "engine/base/error.h"
#include "engine/stream_observer.h"
#include "tests/cuda_stand_in/stand_in.h"
#include "tests/support/catch.h"

#include <cudnn.h>

namespace arbalest::tests {
namespace {

using Catch::Matchers::Contains;
using engine::ErrorKind;

constexpr std::size_t kMiB = std::size_t{1} << 20U;
constexpr std::size_t kGraphRoom = 2 * kMiB;  // the estimate's reserve for a learner's recordings

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

// Destroys a stream in a separate thread while another stream is being captured.
class DestroyingObserver final : public engine::StreamObserver {
 public:
  ~DestroyingObserver() override { join(); }

  // The stream must be destroyed before its device.
  void join() {
    if (thread_.joinable()) thread_.join();
  }

  void before_task(const engine::Stream&, const engine::TaskInfo& task) override {
    if (std::string_view(task.label) != "captured" || victim == nullptr) return;
    const std::uint64_t before = cuda_stand_in::calls("cudnnDestroy");
    thread_ = std::thread([stream = std::move(victim)]() mutable { stream.reset(); });
    // Waits long enough for a destruction that nothing delays.
    constexpr int kLooks = 2000;
    for (int i = 0; i < kLooks && cuda_stand_in::calls("cudnnDestroy") == before; ++i) {
      std::this_thread::sleep_for(std::chrono::microseconds(50));
    }
  }
  void after_task(const engine::Stream&, const engine::TaskInfo&) override {}

  std::unique_ptr<engine::Stream> victim;

 private:
  std::thread thread_;
};

}  // namespace

TEST_CASE("handles can use unused memory that the pool keeps") {
  cuda_stand_in::reset({.memory = 64 * kMiB});
  const auto device = open_gpu();
  device->allocate(62 * kMiB);  // freed at once
  const auto stream = device->create_stream({.name = "learner 0"});
  CHECK(cuda_stand_in::calls("cudaMemPoolTrimTo") == 1);
}

TEST_CASE("a handle that cannot get memory is an out-of-memory error, for any status of the library") {
  for (std::uint64_t seed = 1; seed <= 10; ++seed) {
    CAPTURE(seed);
    for (const std::size_t left : {33 * kMiB, 35 * kMiB}) {  // the workspace takes 32
      cuda_stand_in::reset({.memory = 64 * kMiB}, seed);
      const auto device = open_gpu();
      const engine::Buffer taken = device->allocate(64 * kMiB - left);
      const std::size_t before = device->free_memory();
      const Failure failure = failure_of_new_stream(*device);
      CHECK(failure.kind == ErrorKind::kOutOfMemory);
      CHECK_THAT(failure.message, Contains(left == 33 * kMiB ? "cuda:0: cublasCreate: " : "cuda:0: cudnnCreate: ") &&
                                      Contains("MiB of device memory left"));
      CHECK(device->free_memory() == before);
    }
  }
}

TEST_CASE("a handle that fails with much memory left is a device error") {
  const auto device = open_gpu();
  cuda_stand_in::fail_next("cudnnCreate", CUDNN_STATUS_INTERNAL_ERROR);
  const Failure failure = failure_of_new_stream(*device);
  CHECK(failure.kind == ErrorKind::kDevice);
  CHECK_THAT(failure.message, Contains("cudnnCreate: "));
}

TEST_CASE("a stream with its handles takes the GPU memory that was estimated") {
  const auto device = open_gpu();
  using engine::StreamRole;
  for (const auto& [role, replicas] :
       {std::pair{StreamRole::kLearner, 1}, {StreamRole::kLearner, 8}, {StreamRole::kSynchronization, 1}}) {
    const engine::StreamOptions options{.name = "stream", .role = role, .replicas = replicas};
    const std::size_t estimate = device->stream_bytes(options);
    CHECK(estimate < 2 * 32 * kMiB);  // one workspace, whatever the number of replicas
    const std::size_t before = device->free_memory();
    const auto stream = device->create_stream(options);
    CHECK(before - device->free_memory() == estimate - (engine::runs_operators(role) ? kGraphRoom : 0));
  }
}

// cublasSetStream takes the workspace away, and the stand-in refuses products without one.
TEST_CASE("a stream binds its cuBLAS handle once, and gives it one workspace for all replicas") {
  const auto device = open_gpu();
  const auto stream = device->create_stream({.name = "learners 0 to 7", .replicas = 8});
  CHECK(cuda_stand_in::calls("cublasCreate") == 1);
  CHECK(cuda_stand_in::calls("cublasSetStream") == 1);
  CHECK(cuda_stand_in::calls("cublasSetWorkspace") == 1);
}

TEST_CASE("a stream is not destroyed while another stream of its device is being captured") {
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
