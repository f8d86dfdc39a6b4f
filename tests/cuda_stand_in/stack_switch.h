// Stacks of their own for the threads of a kernel. ucontext would do the same, with a system call at every switch:
// twenty times slower, and a reduction of one block switches some thousand times.
#pragma once

#include <cstddef>
#include <memory>

namespace arbalest::tests::cuda_stand_in {

class Stack {
 public:
  // Runs entry() when first entered; it may never return.
  //   number: of the stack among those used by turns, so that not all of them compete for the same lines of the cache
  Stack(void (*entry)(), std::size_t number);
  ~Stack();
  Stack(const Stack&) = delete;
  Stack& operator=(const Stack&) = delete;

  // Called on the host thread's own stack: goes on on this stack, until it calls leave().
  void enter();
  // Called on this stack: goes on where enter() was called.
  void leave();

  // What entry() does first.
  void arrive();

 private:
  std::unique_ptr<std::byte[]> memory_;
  void* position_ = nullptr;       // of this stack, while another one runs
  void* host_position_ = nullptr;  // of the host thread's stack, while this one runs
  // What sanitizers are told.
  void* fiber_ = nullptr;
  void* host_fiber_ = nullptr;
  const void* host_bottom_ = nullptr;
  std::size_t host_size_ = 0;
};

}  // namespace arbalest::tests::cuda_stand_in
