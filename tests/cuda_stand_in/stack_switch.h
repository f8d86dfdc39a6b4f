// Separate stacks for the threads of a kernel. ucontext would do the same with a system call at every switch, which is
// twenty times slower. A reduction of one block makes several thousand switches.
#pragma once

#include <cstddef>
#include <memory>

namespace arbalest::tests::cuda_stand_in {

class Stack {
 public:
  // Runs entry() when it is first entered. entry() must never return.
  //   number: number of the stack. It shifts the start, so that stacks do not compete for the same cache lines.
  Stack(void (*entry)(), std::size_t number);
  ~Stack();
  Stack(const Stack&) = delete;
  Stack& operator=(const Stack&) = delete;

  // Called on the host thread's own stack: continues on this stack until leave() is called.
  void enter();
  // Called on this stack: continues where enter() was called.
  void leave();

  // entry() must call this first.
  void arrive();

 private:
  std::unique_ptr<std::byte[]> memory_;
  void* position_ = nullptr;       // of this stack, while another one runs
  void* host_position_ = nullptr;  // of the host thread's stack, while this one runs
  // Information for sanitizers.
  void* fiber_ = nullptr;
  void* host_fiber_ = nullptr;
  const void* host_bottom_ = nullptr;
  std::size_t host_size_ = 0;
};

}  // namespace arbalest::tests::cuda_stand_in
