// Exceptions of oneDNN, oneTBB and the system on host threads reach callers as engine::Error.
#include "engine/cpu/runtime/errors.h"

#include <pthread.h>

#include <new>
#include <stdexcept>
#include <string>

#include <dnnl.hpp>

#include "engine/base/error.h"
#include "tests/engine/operator_run.h"
#include "tests/support/catch.h"

namespace arbalest::tests {
namespace {

using engine::DType;
using engine::Error;
using engine::ErrorKind;

template <typename Body>
Error error_of(const Body& body) {
  try {
    body();
  } catch (const Error& error) {
    return error;
  }
  FAIL("nothing was thrown");
  return {ErrorKind::kInternal, ""};
}

template <typename Thrown>
Error translated(const Thrown& thrown) {
  return error_of([&] { engine::cpu::translate_errors([&] { throw thrown; }); });
}

// In its scope, new threads request a stack larger than any address space.
class NoMoreThreads {
 public:
  NoMoreThreads() {
    pthread_getattr_default_np(&before_);
    pthread_attr_t huge;
    pthread_attr_init(&huge);
    pthread_attr_setstacksize(&huge, std::size_t{1} << 60U);
    REQUIRE(pthread_setattr_default_np(&huge) == 0);
    pthread_attr_destroy(&huge);
  }
  ~NoMoreThreads() {
    pthread_setattr_default_np(&before_);
    pthread_attr_destroy(&before_);
  }
  NoMoreThreads(const NoMoreThreads&) = delete;
  NoMoreThreads& operator=(const NoMoreThreads&) = delete;

 private:
  pthread_attr_t before_;
};

TEST_CASE("exceptions from libraries become engine errors of the right kind") {
  const Error memory = translated(dnnl::error(dnnl_out_of_memory, "could not create a primitive"));
  CHECK(memory.kind() == ErrorKind::kOutOfMemory);
  CHECK(memory.what() == std::string("oneDNN: could not create a primitive (out_of_memory)"));
  const Error other = translated(dnnl::error(dnnl_unimplemented, "could not create a primitive"));
  CHECK(other.kind() == ErrorKind::kDevice);
  CHECK(other.what() == std::string("oneDNN: could not create a primitive (unimplemented)"));
  CHECK(translated(std::bad_alloc()).kind() == ErrorKind::kOutOfMemory);
  CHECK(translated(std::runtime_error("broken")).kind() == ErrorKind::kDevice);
  CHECK(translated(std::runtime_error("broken")).what() == std::string("broken"));
  const Error ours = translated(Error(ErrorKind::kData, "record 5"));
  CHECK(ours.kind() == ErrorKind::kData);
  CHECK(ours.what() == std::string("record 5"));
}

TEST_CASE("an operator that oneDNN rejects is a device error") {
  const auto device = open_test_device();
  const engine::Layout images = device->plain_layout({1, 8, 4, 4}, DType::kFloat32);
  const engine::Layout features = device->plain_layout({2, 8}, DType::kFloat32);
  const Error conv = error_of([&] {
    device->prepare(engine::Conv2dSpec{images, std::int64_t{1} << 40U, {{3, 3}, {1, 1}}}, {});
  });
  CHECK(conv.kind() == ErrorKind::kDevice);
  CHECK_THAT(conv.what(), ContainsSubstring("oneDNN: could not create") && ContainsSubstring("convolution"));
  const Error dense = error_of([&] {
    device->prepare(engine::DenseSpec{features, 4}, {.parameters = {features, features}});
  });
  CHECK(dense.kind() == ErrorKind::kDevice);
  CHECK_THAT(dense.what(), ContainsSubstring("oneDNN: could not"));
}

TEST_CASE("the error for a stream whose thread cannot start names the stream") {
  const auto device = open_test_device();
  const Error error = error_of([&] {
    const NoMoreThreads limit;
    device->create_stream({.name = "learner 3"});
  });
  CHECK(error.kind() == ErrorKind::kOutOfMemory);  // fewer learners may fit
  CHECK_THAT(error.what(), ContainsSubstring("cpu learner 3: cannot start its thread"));
}

}  // namespace
}  // namespace arbalest::tests
