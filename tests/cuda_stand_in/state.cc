#include "tests/cuda_stand_in/state.h"

#include <algorithm>
#include <chrono>
#include <cstdlib>
#include <stdexcept>

#include <fmt/format.h>

#include "tests/cuda_stand_in/clique.h"
#include "tests/cuda_stand_in/executor.h"

namespace arbalest::tests::cuda_stand_in {

namespace {

// The machine that the environment describes.
Machine first_machine() {
  Machine machine;
  if (const char* gpus = std::getenv(kGpusVariable); gpus != nullptr) machine.devices = std::atoi(gpus);
  if (const char* visible = std::getenv("CUDA_VISIBLE_DEVICES"); visible != nullptr) {
    const std::string list = visible;
    machine.first_device = std::atoi(visible);
    machine.devices = 1 + static_cast<int>(std::ranges::count(list, ','));
  }
  return machine;
}

std::vector<Device> devices_of(const Machine& machine) {
  std::vector<Device> devices(static_cast<std::size_t>(machine.devices));
  for (std::size_t d = 0; d < devices.size(); ++d) devices[d].pool.device = static_cast<int>(d);
  return devices;
}

}  // namespace

State::State() : machine(first_machine()), devices(devices_of(machine)) {}

State& state() {
  static State the_state;
  return the_state;
}

Lock::Lock() {
  state().mutex.lock();
  ++state().lock_depth;
}

Lock::~Lock() {
  --state().lock_depth;
  state().mutex.unlock();
}

void let_others_run() {
  constexpr auto kMoment = std::chrono::microseconds(50);
  State& all = state();
  const int depth = std::exchange(all.lock_depth, 0);
  for (int i = 0; i < depth; ++i) all.mutex.unlock();
  std::this_thread::sleep_for(kMoment);
  for (int i = 0; i < depth; ++i) all.mutex.lock();
  all.lock_depth = depth;
}

Thread& this_thread() {
  thread_local Thread thread;
  if (thread.epoch != state().epoch) {
    thread = {};
    thread.epoch = state().epoch;
  }
  return thread;
}

void violation(const std::string& text) {
  std::vector<std::string>& known = state().violations;
  if (std::ranges::find(known, text) == known.end()) known.push_back(text);
}

std::size_t random_below(std::size_t bound) { return static_cast<std::size_t>(state().random() % bound); }

bool is_alive(const void* handle, const char* kind, const char* function) {
  const auto found = state().handles.find(handle);
  if (found != state().handles.end() && found->second.alive && found->second.kind == kind) return true;
  const bool destroyed = found != state().handles.end() && !found->second.alive;
  violation(fmt::format("{}: uses a {} {}", function, kind, destroyed ? "that was destroyed" : "that does not exist"));
  return false;
}

bool end_handle(const void* handle, const char* kind, const char* function) {
  if (!is_alive(handle, kind, function)) return false;
  state().handles[handle].alive = false;
  return true;
}

void reset(const Machine& machine, std::uint64_t seed) {
  State& all = state();
  const Lock lock;
  ++all.epoch;
  all.machine = machine;
  all.random.seed(seed);
  all.eagerness = static_cast<int>(random_below(4));
  all.streams.clear();
  all.devices = devices_of(machine);
  all.memory.clear();
  all.freed_too_early.clear();
  all.dynamic_limits.clear();
  all.handles.clear();
  all.captures.clear();
  all.injected.clear();
  all.injected_executions.clear();
  all.violations.clear();
  all.enqueued_works = 0;
  all.nodes_of_graphs.clear();
  all.calls.clear();
  all.microseconds.clear();
  Clique::forget_all();
}

void fail_next(const std::string& function, int error, int after) {
  const Lock lock;
  state().injected.push_back({function, error, after});
}

void fail_execution(cudaError_t error, int after) {
  const Lock lock;
  state().injected_executions.push_back({"", error, after});
}

void set_time(const std::string& function, double microseconds) {
  const Lock lock;
  state().microseconds[function] = microseconds;
}

int take_steps(int count) {
  const Lock lock;
  int taken = 0;
  while (taken < count && take_step()) ++taken;
  return taken;
}

std::vector<std::string> violations() {
  const Lock lock;
  return state().violations;
}

std::vector<std::string> leaks() {
  const Lock lock;
  std::map<std::string, int> counts;
  for (const auto& [address, handle] : state().handles) {
    if (handle.alive) ++counts[handle.kind];
  }
  for (const auto& [address, allocation] : state().memory) {
    ++counts[allocation.kind == MemoryKind::kDevice ? "piece of device memory" : "piece of pinned memory"];
  }
  std::vector<std::string> texts;
  for (const auto& [kind, count] : counts) texts.push_back(fmt::format("{} x {} never given back", count, kind));
  return texts;
}

void require_clean(bool also_leaks) {
  std::string text;
  for (const std::string& line : violations()) text += line + "\n";
  if (also_leaks) {
    for (const std::string& line : leaks()) text += line + "\n";
  }
  if (!text.empty()) throw std::runtime_error("CUDA's libraries were used wrongly:\n" + text);
}

std::uint64_t calls(const std::string& function) {
  const Lock lock;
  return state().calls[function];
}

std::vector<std::size_t> nodes_of_graphs() {
  const Lock lock;
  return state().nodes_of_graphs;
}

std::uint64_t enqueued_works() {
  const Lock lock;
  return state().enqueued_works;
}

}  // namespace arbalest::tests::cuda_stand_in
