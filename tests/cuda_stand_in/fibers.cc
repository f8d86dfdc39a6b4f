#include "tests/cuda_stand_in/fibers.h"

#include <algorithm>
#include <array>
#include <cstddef>
#include <memory>
#include <numeric>
#include <utility>
#include <vector>

#include <fmt/format.h>

#include "tests/cuda_stand_in/dynamic_memory.h"
#include "tests/cuda_stand_in/kernel_language.h"
#include "tests/cuda_stand_in/shared_memory.h"
#include "tests/cuda_stand_in/stack_switch.h"
#include "tests/cuda_stand_in/state.h"

uint3 threadIdx;
uint3 blockIdx;
dim3 blockDim;
dim3 gridDim;

namespace arbalest::tests::cuda_stand_in {

namespace {

void run_threads();

// Where a thread meets its warp, and what it gives to the operation there.
struct Meeting {
  bool is_of_warp = false;  // false: it meets its whole block
  WarpOperation operation;
  void* own = nullptr;
  bool all_came = true;
};

// Runs complete threads, one after another, until one of them reaches a barrier. Then the fiber waits there with that
// thread.
struct Fiber {
  explicit Fiber(std::size_t number) : stack(run_threads, number) {}

  Stack stack;
  uint3 thread{};
  int barrier = 0;  // source line of the barrier where it waits; 0: none
  Meeting meeting;
  AsyncCopies copies;
};

struct BlockRun;

struct Grid {
  std::vector<std::unique_ptr<Fiber>> fibers;  // all
  std::vector<Fiber*> idle;
  Fiber* running = nullptr;
  BlockRun* block = nullptr;  // the running one

  const std::function<void()>* function = nullptr;
  std::size_t threads = 0;  // of a block
  std::size_t dynamic_bytes = 0;
};

Grid the_grid;  // under the lock of the stand-in

// A block that has begun, running from barrier to barrier.
struct BlockRun {
  uint3 index{};
  std::size_t begun = 0;  // number of its threads that have begun
  bool backwards = false;
  bool has_waited = false;                 // one of its threads, anywhere
  std::vector<Fiber*> waiting;             // at a barrier of the block
  std::vector<std::vector<Fiber*>> warps;  // lanes that wait for their warp; empty before the first
  DynamicMemory dynamic{the_grid.dynamic_bytes};
  SharedContents shared;  // while another block runs
};

uint3 index_of(std::size_t number, dim3 size) {
  const auto place = static_cast<unsigned>(number);
  return {place % size.x, place / size.x % size.y, place / size.x / size.y};
}

std::size_t ordered(std::size_t number, std::size_t count, bool backwards) {
  return backwards ? count - 1 - number : number;
}

void run_threads() {
  Grid& all = the_grid;
  all.running->stack.arrive();
  for (;;) {
    Fiber& fiber = *all.running;
    while (all.block->begun < all.threads) {
      fiber.thread = index_of(ordered(all.block->begun++, all.threads, all.block->backwards), blockDim);
      threadIdx = fiber.thread;
      (*all.function)();
      if (!fiber.copies.clear()) violation("a kernel: a thread ends before it has waited for its copies");
    }
    fiber.barrier = 0;
    fiber.stack.leave();
  }
}

std::size_t thread_number(uint3 thread) {
  return thread.x + blockDim.x * (thread.y + std::size_t{blockDim.y} * thread.z);
}

std::size_t warp_of(const Fiber& fiber) { return thread_number(fiber.thread) / kWarpLanes; }

// Number of lanes of a warp. The last warp of a block may have fewer than the others.
std::size_t lanes_of(std::size_t warp) {
  return std::min<std::size_t>(kWarpLanes, the_grid.threads - warp * kWarpLanes);
}

// Runs the fiber to its next barrier, where it waits, or to its end.
void run_on(BlockRun& block, Fiber& fiber) {
  the_grid.running = &fiber;
  threadIdx = fiber.thread;
  fiber.stack.enter();
  if (fiber.barrier == 0) return the_grid.idle.push_back(&fiber);
  block.has_waited = true;
  if (!fiber.meeting.is_of_warp) return block.waiting.push_back(&fiber);
  if (block.warps.empty()) block.warps.resize(the_grid.threads / kWarpLanes + 1);
  block.warps[warp_of(fiber)].push_back(&fiber);
}

// Removes the fibers from a list, in its order or the opposite one.
std::vector<Fiber*> take_in_some_order(std::vector<Fiber*>& list) {
  if (random_below(2) == 0) std::ranges::reverse(list);
  std::vector<Fiber*> taken;
  taken.swap(list);
  return taken;
}

// Whether all lanes of a warp wait at one operation. If not, records a violation: the others have ended or wait
// elsewhere, so they will not come.
bool have_met(const std::vector<Fiber*>& lanes, std::size_t warp) {
  const Fiber& first = *lanes[0];
  const WarpOperation& operation = first.meeting.operation;
  const bool same = std::ranges::all_of(lanes, [&](const Fiber* fiber) {
    return fiber->barrier == first.barrier && fiber->meeting.operation.run == operation.run;
  });
  if (lanes.size() != lanes_of(warp) || !same) {
    violation(
        fmt::format("a kernel: not all lanes of a warp come to the {} in line {}", operation.name, first.barrier));
    return false;
  }
  if (lanes.size() == kWarpLanes || operation.run == nullptr) return true;
  violation(fmt::format("a kernel: the {} in line {} of a warp that has only {} lanes", operation.name, first.barrier,
                        lanes.size()));
  return false;
}

// Runs the operation at which a warp waits, and its lanes to their next barriers.
void pass_operation(BlockRun& block, std::size_t warp) {
  std::vector<Fiber*>& lanes = block.warps[warp];
  const bool met = have_met(lanes, warp);
  std::array<void*, kWarpLanes> given{};
  for (Fiber* fiber : lanes) {
    fiber->meeting.all_came = met;
    given[thread_number(fiber->thread) % kWarpLanes] = fiber->meeting.own;
  }
  const WarpOperation operation = lanes[0]->meeting.operation;
  if (met && operation.run != nullptr) operation.run(given.data());
  for (Fiber* fiber : take_in_some_order(lanes)) run_on(block, *fiber);
}

// Lets warps run, one operation of a random one at a time, until none of them waits for its lanes.
//   only_complete: leaves warps that still lack lanes
void pass_operations(BlockRun& block, bool only_complete) {
  std::vector<std::size_t> ready;
  for (;;) {
    ready.clear();
    for (std::size_t warp = 0; warp < block.warps.size(); ++warp) {
      const std::size_t waiting = block.warps[warp].size();
      if (waiting > 0 && (!only_complete || waiting == lanes_of(warp))) ready.push_back(warp);
    }
    if (ready.empty()) return;
    pass_operation(block, ready[random_below(ready.size())]);
  }
}

// Runs a fiber on. If its warp is complete then, the warp may run ahead of others that have not even come so far.
void run_on_or_ahead(BlockRun& block, Fiber& fiber) {
  run_on(block, fiber);
  if (fiber.barrier == 0 || !fiber.meeting.is_of_warp) return;
  const std::size_t warp = warp_of(fiber);
  if (block.warps[warp].size() == lanes_of(warp) && random_below(2) == 0) pass_operations(block, true);
}

Fiber& idle_fiber() {
  Grid& all = the_grid;
  if (all.idle.empty()) all.idle.push_back(all.fibers.emplace_back(std::make_unique<Fiber>(all.fibers.size())).get());
  Fiber& fiber = *all.idle.back();
  all.idle.pop_back();
  return fiber;
}

void begin(BlockRun& block) {
  while (block.begun < the_grid.threads) run_on_or_ahead(block, idle_fiber());
}

void pass_barrier(BlockRun& block) {
  const std::vector<Fiber*>& waiting = block.waiting;
  const bool same = std::ranges::all_of(waiting, [&](Fiber* fiber) { return fiber->barrier == waiting[0]->barrier; });
  if (waiting.size() != the_grid.threads || !same) {
    violation(
        fmt::format("a kernel: not all threads of a block come to the __syncthreads in line {}", waiting[0]->barrier));
  }
  for (Fiber* fiber : take_in_some_order(block.waiting)) run_on_or_ahead(block, *fiber);
}

// Runs blocks in a random order, several of them in turns. In its turn a block runs to its next barrier.
class BlockTurns {
 public:
  explicit BlockTurns(std::size_t count) : order_(count) {
    std::iota(order_.begin(), order_.end(), std::size_t{0});
    for (std::size_t i = count; i > 1; --i) std::swap(order_[i - 1], order_[random_below(i)]);
  }

  void run() {
    while (next_ < order_.size() || !under_way_.empty()) {
      if (under_way_.empty() || (next_ < order_.size() && under_way_.size() < kAtOnce && random_below(2) == 0)) {
        under_way_.push_back(std::make_unique<BlockRun>());
        under_way_.back()->index = index_of(order_[next_++], gridDim);
        under_way_.back()->backwards = random_below(2) == 0;
      }
      const std::size_t turn = random_below(under_way_.size());
      take_turn(*under_way_[turn]);
      if (under_way_[turn]->waiting.empty()) {
        if (!under_way_[turn]->dynamic.is_guard_whole()) violation("a kernel: writes behind its dynamic shared memory");
        if (present_ == under_way_[turn].get()) present_ = nullptr;
        under_way_.erase(under_way_.begin() + static_cast<std::ptrdiff_t>(turn));
      }
    }
  }

 private:
  static constexpr std::size_t kAtOnce = 3;

  void take_turn(BlockRun& block) {
    the_grid.block = &block;
    blockIdx = block.index;
    const bool is_poisoned = present_ != nullptr && present_ != &block;
    if (is_poisoned) present_->shared = take_shared_memory();
    if (block.begun == 0) {
      if (has_barriers_ && !is_poisoned) poison_shared_memory();
      begin(block);
      // Threads that share memory must wait for each other, so kernels without barriers need no poison.
      has_barriers_ = has_barriers_ && (next_ > 1 || block.has_waited);
    } else {
      if (present_ != &block) {
        if (!is_poisoned) poison_shared_memory();
        put_shared_memory(block.shared);
      }
      pass_barrier(block);
    }
    pass_operations(block, false);
    present_ = &block;
  }

  std::vector<std::size_t> order_;
  std::size_t next_ = 0;  // index in order_
  std::vector<std::unique_ptr<BlockRun>> under_way_;
  BlockRun* present_ = nullptr;  // the block whose shared memory is loaded
  bool has_barriers_ = true;     // as far as is known
};

}  // namespace

void run_grid(dim3 blocks, dim3 block, const std::function<void()>& thread, std::size_t dynamic_bytes) {
  Grid& all = the_grid;
  all.function = &thread;
  all.threads = std::size_t{block.x} * block.y * block.z;
  all.dynamic_bytes = dynamic_bytes;
  gridDim = blocks;
  blockDim = block;
  BlockTurns(std::size_t{blocks.x} * blocks.y * blocks.z).run();
}

void wait_at_barrier(int line) {
  Fiber& fiber = *the_grid.running;
  fiber.barrier = line;
  fiber.meeting.is_of_warp = false;
  fiber.stack.leave();
}

bool meet_warp(const WarpOperation& operation, unsigned mask, int line, void* own) {
  if (mask != kWholeWarp) {
    violation(fmt::format("a kernel: the {} in line {} has the mask {:#010x}; the stand-in only has whole warps",
                          operation.name, line, mask));
    return false;
  }
  Fiber& fiber = *the_grid.running;
  fiber.barrier = line;
  fiber.meeting = {true, operation, own};
  fiber.stack.leave();
  return fiber.meeting.all_came;
}

std::byte* dynamic_shared_memory(int line) {
  const DynamicMemory& memory = the_grid.block->dynamic;
  if (memory.bytes() > 0) return memory.data();
  violation(fmt::format("a kernel: uses dynamic shared memory in line {}, but its launch has none", line));
  return nullptr;
}

AsyncCopies& copies_of_thread() { return the_grid.running->copies; }

bool is_in_shared_memory(const void* address, std::size_t bytes) {
  const DynamicMemory& memory = the_grid.block->dynamic;
  const auto* begin = static_cast<const std::byte*>(address);
  const bool is_dynamic = begin >= memory.data() && begin + bytes <= memory.data() + memory.bytes();
  return is_dynamic || is_shared_variable(begin, bytes);
}

}  // namespace arbalest::tests::cuda_stand_in
