// In steady state our code makes no heap allocation in a round. This program replaces operator new and counts calls in
// the scheduler's thread, and in stream threads while a task runs. It recognizes oneDNN's own calls by their return
// address.
#include <dlfcn.h>

#include <atomic>
#include <cstdlib>
#include <new>
#include <string>
#include <string_view>

#include "engine/host/topology.h"
#include "engine/stream_observer.h"
#include "tests/support/catch.h"
#include "tests/support/skip.h"
#include "tests/support/training_rig.h"
#include "tests/support/zoo_layers.h"

namespace {

std::atomic<long> allocations_of_ours{0};
std::atomic<long> allocations_of_onednn{0};
std::atomic<long> tasks_counted{0};  // tasks of all streams
std::atomic<bool> counting{false};
thread_local bool in_step = false;

bool from_onednn(void* address) {
  Dl_info caller{};
  if (dladdr(address, &caller) == 0 || caller.dli_fname == nullptr) return false;
  const std::string_view library = caller.dli_fname;
  return library.find("libdnnl") != library.npos || library.find("libgomp") != library.npos;
}

void* counted(std::size_t bytes, void* caller) {
  if (in_step && counting) ++(from_onednn(caller) ? allocations_of_onednn : allocations_of_ours);
  void* memory = std::malloc(bytes == 0 ? 1 : bytes);
  if (memory == nullptr) throw std::bad_alloc();
  return memory;
}

// Marks the time in which a stream thread runs a task.
class StepMarker final : public arbalest::engine::StreamObserver {
 public:
  void before_task(const arbalest::engine::Stream&, const arbalest::engine::TaskInfo&) override {
    in_step = true;
    if (counting) ++tasks_counted;
  }
  void after_task(const arbalest::engine::Stream&, const arbalest::engine::TaskInfo&) override { in_step = false; }
};

}  // namespace

void* operator new(std::size_t bytes) { return counted(bytes, __builtin_return_address(0)); }
void* operator new[](std::size_t bytes) { return counted(bytes, __builtin_return_address(0)); }
// AddressSanitizer's own operator new would not match the deletes below.
void* operator new(std::size_t bytes, const std::nothrow_t&) noexcept {
  return counted(bytes, __builtin_return_address(0));
}
void operator delete(void* memory) noexcept { std::free(memory); }
void operator delete[](void* memory) noexcept { std::free(memory); }
void operator delete(void* memory, std::size_t) noexcept { std::free(memory); }
void operator delete[](void* memory, std::size_t) noexcept { std::free(memory); }

TEST_CASE("a round in steady state allocates nothing", "[allocation]") {
  StepMarker marker;
  arbalest::tests::RigOptions options;
  options.layers = arbalest::tests::lenet();
  options.image = {1, 28, 28};
  options.classes = 10;
  options.learners = {2};
  options.clip_gradient_norm = 1.0F;
  options.observer = &marker;
  options.input = GENERATE(arbalest::tests::RigInput::kFloats, arbalest::tests::RigInput::kResident);
  SECTION("on one device") {}
  SECTION("on two devices") {
    options.devices = arbalest::tests::two_devices(arbalest::engine::host::allowed_cores());
    if (options.devices.empty()) arbalest::tests::skip_test("needs two cores");
    options.learners = {1, 1};
  }
  arbalest::tests::TrainingRig rig(options);
  rig.run(5);
  allocations_of_ours = allocations_of_onednn = tasks_counted = 0;
  counting = in_step = true;
  rig.run(20);
  counting = in_step = false;
  CHECK(tasks_counted > 0);
  CHECK(allocations_of_ours == 0);
  WARN("oneDNN allocated " << allocations_of_onednn << " times in 40 steps");

  // A deliberate allocation shows that the counter works.
  counting = in_step = true;
  delete new std::string(100, 'x');
  counting = in_step = false;
  CHECK(allocations_of_ours > 0);
}
