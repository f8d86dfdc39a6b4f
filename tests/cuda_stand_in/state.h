// The complete state of the stand-in. One lock guards it, and every call of the libraries holds the lock (call.h).
#pragma once

#include <cuda_runtime_api.h>

#include <cstdint>
#include <deque>
#include <map>
#include <memory>
#include <mutex>
#include <optional>
#include <random>
#include <string>
#include <thread>
#include <utility>
#include <vector>

#include "tests/cuda_stand_in/block.h"
#include "tests/cuda_stand_in/stand_in.h"
#include "tests/cuda_stand_in/work.h"

namespace arbalest::tests::cuda_stand_in {

struct Capture {
  CUstream_st* origin = nullptr;
  std::thread::id thread;
  bool active = true;
  bool valid = true;
  std::vector<Node> nodes;
};

}  // namespace arbalest::tests::cuda_stand_in

// The handles of the runtime. Their names come from the runtime's headers.
struct CUstream_st {
  struct Entry {
    std::shared_ptr<const arbalest::tests::cuda_stand_in::Work> work;
    std::unique_ptr<arbalest::tests::cuda_stand_in::Execution> execution;  // null: not begun
  };

  int device = 0;
  bool blocking = false;  // in order with the legacy stream
  int priority = 0;
  int weight = 1;  // how likely it is picked to run
  std::deque<Entry> queue;
  std::uint64_t enqueued = 0;
  std::uint64_t completed = 0;
  double microseconds = 0.0;  // that all enqueued works take (set_time)
  arbalest::tests::cuda_stand_in::Capture* capture = nullptr;
  std::vector<std::size_t> last_nodes;  // of the capture: the predecessors of the stream's next node
  bool is_nccl_issuing = false;         // NCCL will enqueue its work in the background
};

struct CUevent_st {
  int device = 0;
  bool is_timed = false;
  double microseconds = 0.0;  // CUstream_st::microseconds at its place
  bool recorded = false;
  arbalest::tests::cuda_stand_in::Position position;
  arbalest::tests::cuda_stand_in::Capture* capture = nullptr;  // the capture that recorded it
  std::vector<std::size_t> nodes;
};

struct CUgraph_st {
  std::vector<arbalest::tests::cuda_stand_in::Node> nodes;
};

struct CUgraphExec_st {
  int device = 0;
  std::size_t bytes = 0;  // of device memory
  std::shared_ptr<const std::vector<arbalest::tests::cuda_stand_in::Node>> nodes;
  arbalest::tests::cuda_stand_in::Position last_launch;
};

struct CUmemPoolHandle_st {
  int device = 0;
  std::uint64_t release_threshold = 0;
};

namespace arbalest::tests::cuda_stand_in {

// The number of GPUs, for programs that do not call reset().
inline constexpr const char* kGpusVariable = "ARBALEST_STAND_IN_GPUS";

enum class MemoryKind { kDevice, kPinned };

struct Allocation {
  MemoryKind kind = MemoryKind::kDevice;
  bool is_pooled = false;
  int device = 0;
  std::size_t bytes = 0;
  Block block;  // with guards before and after
};

struct Device {
  cudaError_t failure = cudaSuccess;  // permanent
  // In bytes. The pool keeps freed memory up to its threshold, and libraries cannot use that memory.
  std::size_t pool_reserved = 0;
  std::size_t pool_used = 0;
  std::size_t elsewhere = 0;  // cudaMalloc, handles of libraries, graphs
  CUstream_st* legacy_stream = nullptr;
  CUmemPoolHandle_st pool;
};

// The runtime's state for each host thread.
struct Thread {
  std::uint64_t epoch = 0;
  int device = 0;
  cudaError_t last_error = cudaSuccess;
  std::map<int, CUstream_st*> own_streams;  // cudaStreamPerThread, by device
};

struct InjectedError {
  std::string function;
  int error = 0;
  int after = 0;
};

struct Handle {
  std::string kind;
  bool alive = true;
  std::shared_ptr<void> object;  // kept after it is destroyed, so that no other handle gets its address
};

struct State {
  State();

  std::recursive_mutex mutex;
  int lock_depth = 0;                  // how often the thread that has the mutex has locked it
  std::optional<int> hardware_queues;  // nullopt: the runtime has not started; reset() does not stop it
  std::uint64_t epoch = 1;             // incremented by reset()
  Machine machine;
  std::mt19937_64 random{1};
  int eagerness = 2;  // of 4: the chance that a call runs one more step of work
  std::vector<Device> devices;
  std::map<std::uintptr_t, Allocation> memory;  // by address
  std::vector<Allocation> freed_too_early;
  std::map<std::pair<int, const void*>, std::size_t> dynamic_limits;  // of cudaFuncSetAttribute, by device and kernel
  std::map<const void*, Handle> handles;
  std::vector<CUstream_st*> streams;  // all of them, also idle and destroyed ones
  std::vector<std::unique_ptr<Capture>> captures;
  std::vector<InjectedError> injected;
  std::vector<InjectedError> injected_executions;
  std::vector<std::string> violations;
  std::uint64_t enqueued_works = 0;
  std::vector<std::size_t> nodes_of_graphs;    // of those instantiated
  std::map<std::string, std::uint64_t> calls;  // by function
  std::map<std::string, double> microseconds;  // of a work, by function (set_time)
};

State& state();

// Locks the state.
class Lock {
 public:
  Lock();
  ~Lock();
  Lock(const Lock&) = delete;
  Lock& operator=(const Lock&) = delete;
};
// Unlocks the state for a moment, so that other host threads make their calls and other processes run.
void let_others_run();

// Returns the state of the calling host thread.
Thread& this_thread();

void violation(const std::string& text);
// Returns a random number in [0, bound).
std::size_t random_below(std::size_t bound);

// Creates and registers a handle.
template <typename T>
T* make_handle(const char* kind) {
  auto object = std::make_shared<T>();
  T* handle = object.get();
  state().handles[handle] = {kind, true, std::move(object)};
  return handle;
}
// If `handle` was never created as this kind, or has been destroyed, records a violation and returns false.
bool is_alive(const void* handle, const char* kind, const char* function);
// Does the same check and ends the handle's life.
bool end_handle(const void* handle, const char* kind, const char* function);

}  // namespace arbalest::tests::cuda_stand_in
