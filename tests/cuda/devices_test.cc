// Error messages for a GPU that is missing, too old or full.
#include <functional>

#include "engine/backends/cuda_devices.h"
#include "engine/base/error.h"
#include "tests/cuda_stand_in/stand_in.h"
#include "tests/support/catch.h"

namespace {

using namespace arbalest;
using engine::ErrorKind;
using tests::cuda_stand_in::Machine;
using tests::cuda_stand_in::reset;

struct Failure {
  ErrorKind kind = ErrorKind::kInternal;
  std::string message;
};

Failure failure_of(const std::function<void()>& action) {
  try {
    action();
  } catch (const engine::Error& error) {
    return {error.kind(), error.what()};
  }
  return {ErrorKind::kInternal, "no error"};
}

Failure opening(const std::string& name) {
  return failure_of([&] { engine::open_device(engine::parse_device(name)); });
}

void check(const Failure& failure, ErrorKind kind, const std::string& part) {
  CHECK(failure.kind == kind);
  CHECK_THAT(failure.message, Catch::Matchers::Contains(part));
}

}  // namespace

TEST_CASE("a machine without driver or GPU gives an error for a GPU, and jobs run on its CPU") {
  reset({.devices = 0, .driver_version = 0});
  check(opening("cuda:0"), ErrorKind::kInvalidJob, "no NVIDIA driver is loaded");
  CHECK(engine::list_devices().front().name == "cpu");
  reset({.devices = 0});
  check(opening("cuda:0"), ErrorKind::kInvalidJob, "has no GPU");
}

TEST_CASE("the error for a driver older than the runtime names the driver's CUDA version") {
  reset({.driver_version = 12000});
  check(opening("cuda:0"), ErrorKind::kInvalidJob, "the NVIDIA driver supports CUDA 12.0");
  check(opening("cuda:0"), ErrorKind::kInvalidJob, "install driver 580 or newer");
}

TEST_CASE("a GPU that the machine does not have is an error in the job") {
  reset({.devices = 2});
  check(opening("cuda:2"), ErrorKind::kInvalidJob, "this machine has 2 GPUs");
  CHECK(engine::list_devices().size() == 2);
}

TEST_CASE("a GPU that is too old is refused") {
  reset({.major = 7, .minor = 5});
  check(opening("cuda:0"), ErrorKind::kDevice, "compute capability 7.5");
}

TEST_CASE("a full GPU can still be used") {
  const auto device = engine::open_device(engine::parse_device("cuda:0"));
  tests::cuda_stand_in::fail_next("cudaMallocAsync", cudaErrorMemoryAllocation);
  check(failure_of([&] { device->allocate(1000); }), ErrorKind::kOutOfMemory, "cuda:0: cannot allocate 1000 bytes");
  CHECK(device->allocate(1000).data() != nullptr);
}
