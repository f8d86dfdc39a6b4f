#include "tests/cuda_stand_in/fibers.h"

#include <algorithm>
#include <memory>
#include <vector>

#include <fmt/format.h>

#include "tests/cuda_stand_in/kernel_language.h"
#include "tests/cuda_stand_in/stack_switch.h"
#include "tests/cuda_stand_in/state.h"

uint3 threadIdx;
uint3 blockIdx;
dim3 blockDim;
dim3 gridDim;

namespace arbalest::tests::cuda_stand_in {

namespace {

void run_threads();

// Runs whole threads, one after another, until one of them comes to a barrier; then it waits there with that thread.
struct Fiber {
  explicit Fiber(std::size_t number) : stack(run_threads, number) {}

  Stack stack;
  uint3 thread{};
  int barrier = 0;  // line; 0: it waits at none
};

struct Grid {
  std::vector<std::unique_ptr<Fiber>> fibers;  // all
  std::vector<Fiber*> idle;
  Fiber* running = nullptr;

  const std::function<void()>* function = nullptr;
  std::size_t threads = 0;  // of a block
  std::size_t begun = 0;    // of the block's threads
  bool backwards = false;
};

Grid the_grid;  // under the lock of the stand-in

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
    while (all.begun < all.threads) {
      fiber.thread = index_of(ordered(all.begun++, all.threads, all.backwards), blockDim);
      threadIdx = fiber.thread;
      (*all.function)();
    }
    fiber.barrier = 0;
    fiber.stack.leave();
  }
}

// True: it has come to a barrier.
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

void run_block() {
  Grid& all = the_grid;
  all.begun = 0;
  std::vector<Fiber*> waiting;
  while (all.begun < all.threads) {
    Fiber& fiber = idle_fiber();
    if (run_on(fiber)) waiting.push_back(&fiber);
  }
  while (!waiting.empty()) {
    const bool same = std::ranges::all_of(waiting, [&](Fiber* fiber) { return fiber->barrier == waiting[0]->barrier; });
    if (waiting.size() != all.threads || !same) {
      violation(fmt::format("a kernel: not all threads of a block come to the __syncthreads in line {}",
                            waiting[0]->barrier));
    }
    if (random_below(2) == 0) std::ranges::reverse(waiting);
    std::vector<Fiber*> released;
    released.swap(waiting);
    for (Fiber* fiber : released) {
      if (run_on(*fiber)) waiting.push_back(fiber);
    }
  }
}

}  // namespace

void run_grid(dim3 blocks, dim3 block, const std::function<void()>& thread) {
  Grid& all = the_grid;
  all.function = &thread;
  all.threads = std::size_t{block.x} * block.y * block.z;
  gridDim = blocks;
  blockDim = block;
  const std::size_t count = std::size_t{blocks.x} * blocks.y * blocks.z;
  const bool blocks_backwards = random_below(2) == 0;
  for (std::size_t number = 0; number < count; ++number) {
    blockIdx = index_of(ordered(number, count, blocks_backwards), blocks);
    all.backwards = random_below(2) == 0;
    run_block();
  }
}

void wait_at_barrier(int line) {
  Fiber& fiber = *the_grid.running;
  fiber.barrier = line;
  fiber.stack.leave();
}

}  // namespace arbalest::tests::cuda_stand_in
