// In steady state a learner's step makes no heap allocation of ours. This program replaces operator new and counts the
// calls that come from its own code on stream threads while a task runs, and on the thread that runs the scheduler;
// calls from inside shared libraries (oneDNN's execute) are told apart by their return address.
#include <dlfcn.h>

#include <atomic>
#include <cstdlib>
#include <cstring>
#include <new>

#include "dataflow/models/lenet.h"
#include "engine/stream_observer.h"
#include "tests/support/catch.h"
#include "tests/support/training_rig.h"

namespace {

std::atomic<long> allocations_of_ours{0};
std::atomic<long> allocations_of_libraries{0};
std::atomic<bool> counting{false};
thread_local bool in_step = false;

bool from_this_program(void* address) {
  Dl_info here{};
  Dl_info caller{};
  static const void* const base =
      dladdr(reinterpret_cast<void*>(&from_this_program), &here) != 0 ? here.dli_fbase : nullptr;
  return dladdr(address, &caller) != 0 && caller.dli_fbase == base;
}

void* counted(std::size_t bytes, void* caller) {
  if (in_step && counting) ++(from_this_program(caller) ? allocations_of_ours : allocations_of_libraries);
  void* memory = std::malloc(bytes == 0 ? 1 : bytes);
  if (memory == nullptr) throw std::bad_alloc();
  return memory;
}

// Marks the time in which a stream thread runs a task.
class StepMarker final : public arbalest::engine::StreamObserver {
 public:
  void before_task(const arbalest::engine::Stream&, const char*) override { in_step = true; }
  void after_task(const arbalest::engine::Stream&, const char*) override { in_step = false; }
};

}  // namespace

void* operator new(std::size_t bytes) { return counted(bytes, __builtin_return_address(0)); }
void* operator new[](std::size_t bytes) { return counted(bytes, __builtin_return_address(0)); }
void operator delete(void* memory) noexcept { std::free(memory); }
void operator delete[](void* memory) noexcept { std::free(memory); }
void operator delete(void* memory, std::size_t) noexcept { std::free(memory); }
void operator delete[](void* memory, std::size_t) noexcept { std::free(memory); }

TEST_CASE("a step in steady state allocates nothing", "[allocation]") {
  StepMarker marker;
  arbalest::tests::RigOptions options;
  options.layers = arbalest::dataflow::lenet(10);
  options.image = {1, 28, 28};
  options.classes = 10;
  options.learners = {2};
  options.observer = &marker;
  arbalest::tests::TrainingRig rig(options);
  rig.run(5);
  counting = true;
  rig.run(20);
  counting = false;
  CHECK(allocations_of_ours == 0);

  // The counter can see one.
  counting = in_step = true;
  delete new std::string(100, 'x');
  counting = in_step = false;
  CHECK(allocations_of_ours > 0);
}
