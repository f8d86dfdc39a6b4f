#include "tests/cuda_stand_in/fibers.h"

#include <algorithm>
#include <cstddef>
#include <memory>
#include <numeric>
#include <utility>
#include <vector>

#include <fmt/format.h>

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

// Runs complete threads, one after another, until one of them reaches a barrier. Then the fiber waits there with that
// thread.
struct Fiber {
  explicit Fiber(std::size_t number) : stack(run_threads, number) {}

  Stack stack;
  uint3 thread{};
  int barrier = 0;  // source line of the barrier where it waits; 0: none
};

struct BlockRun;

struct Grid {
  std::vector<std::unique_ptr<Fiber>> fibers;  // all
  std::vector<Fiber*> idle;
  Fiber* running = nullptr;
  BlockRun* block = nullptr;  // the running one

  const std::function<void()>* function = nullptr;
  std::size_t threads = 0;  // of a block
};

Grid the_grid;  // under the lock of the stand-in

// A block that has begun, running from barrier to barrier.
struct BlockRun {
  uint3 index{};
  std::size_t begun = 0;  // number of its threads that have begun
  bool backwards = false;
  std::vector<Fiber*> waiting;    // at a barrier
  std::vector<std::byte> shared;  // its shared memory while another block runs; empty: not begun
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
    }
    fiber.barrier = 0;
    fiber.stack.leave();
  }
}

// Returns true if the fiber has reached a barrier.
bool run_on(Fiber& fiber) {
  the_grid.running = &fiber;
  threadIdx = fiber.thread;
  fiber.stack.enter();
  if (fiber.barrier == 0) the_grid.idle.push_back(&fiber);
  return fiber.barrier != 0;
}

Fiber& idle_fiber() {
  Grid& all = the_grid;
  if (all.idle.empty()) all.idle.push_back(all.fibers.emplace_back(std::make_unique<Fiber>(all.fibers.size())).get());
  Fiber& fiber = *all.idle.back();
  all.idle.pop_back();
  return fiber;
}

void begin(BlockRun& block) {
  while (block.begun < the_grid.threads) {
    Fiber& fiber = idle_fiber();
    if (run_on(fiber)) block.waiting.push_back(&fiber);
  }
}

void pass_barrier(BlockRun& block) {
  const std::vector<Fiber*>& waiting = block.waiting;
  const bool same = std::ranges::all_of(waiting, [&](Fiber* fiber) { return fiber->barrier == waiting[0]->barrier; });
  if (waiting.size() != the_grid.threads || !same) {
    violation(
        fmt::format("a kernel: not all threads of a block come to the __syncthreads in line {}", waiting[0]->barrier));
  }
  if (random_below(2) == 0) std::ranges::reverse(block.waiting);
  std::vector<Fiber*> released;
  released.swap(block.waiting);
  for (Fiber* fiber : released) {
    if (run_on(*fiber)) block.waiting.push_back(fiber);
  }
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
    if (present_ != nullptr && present_ != &block) present_->shared = save_shared_memory();
    if (block.begun == 0) {
      if (has_barriers_) poison_shared_memory();
      begin(block);
      // Threads that share memory must wait for each other, so kernels without barriers need no poison.
      has_barriers_ = has_barriers_ && (next_ > 1 || !block.waiting.empty());
    } else {
      if (present_ != &block) restore_shared_memory(block.shared);
      pass_barrier(block);
    }
    present_ = &block;
  }

  std::vector<std::size_t> order_;
  std::size_t next_ = 0;  // index in order_
  std::vector<std::unique_ptr<BlockRun>> under_way_;
  BlockRun* present_ = nullptr;  // the block whose shared memory is loaded
  bool has_barriers_ = true;     // as far as is known
};

}  // namespace

void run_grid(dim3 blocks, dim3 block, const std::function<void()>& thread) {
  Grid& all = the_grid;
  all.function = &thread;
  all.threads = std::size_t{block.x} * block.y * block.z;
  gridDim = blocks;
  blockDim = block;
  BlockTurns(std::size_t{blocks.x} * blocks.y * blocks.z).run();
}

void wait_at_barrier(int line) {
  Fiber& fiber = *the_grid.running;
  fiber.barrier = line;
  fiber.stack.leave();
}

}  // namespace arbalest::tests::cuda_stand_in
