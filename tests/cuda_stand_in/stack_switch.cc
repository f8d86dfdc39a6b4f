#include "tests/cuda_stand_in/stack_switch.h"

#include <cstdint>

#if defined(__SANITIZE_ADDRESS__)
#include <sanitizer/common_interface_defs.h>
#endif
#if defined(__SANITIZE_THREAD__)
#include <sanitizer/tsan_interface.h>
#endif

namespace arbalest::tests::cuda_stand_in {

namespace {

constexpr std::size_t kBytes = std::size_t{256} << 10U;  // touched as far as needed
constexpr std::size_t kUsual = 576;                      // typical use of a thread, in whole cache lines
constexpr std::size_t kLargestShift = std::size_t{64} << 10U;

// Saves the registers that a function must preserve (System V ABI of x86-64) and stores the stack pointer in *save.
// Continues at `to` by a jump. A return would be mispredicted by the processor and take twice the time.
__attribute__((naked, noinline)) void switch_stack(void** /*save*/, void* /*to*/) {
  asm("push %rbp\n"
      "push %rbx\n"
      "push %r12\n"
      "push %r13\n"
      "push %r14\n"
      "push %r15\n"
      "mov %rsp, (%rdi)\n"
      "mov %rsi, %rsp\n"
      "pop %r15\n"
      "pop %r14\n"
      "pop %r13\n"
      "pop %r12\n"
      "pop %rbx\n"
      "pop %rbp\n"
      "pop %rcx\n"
      "jmp *%rcx\n");
}

}  // namespace

Stack::Stack(void (*entry)(), std::size_t number) : memory_(std::make_unique_for_overwrite<std::byte[]>(kBytes)) {
  // Prepares the stack as switch_stack leaves it: six registers, the address to continue at, and the end of the chain
  // of callers.
  constexpr std::uintptr_t kAlignment = 16;
  const std::size_t shift = number * kUsual % kLargestShift;
  const std::uintptr_t end = reinterpret_cast<std::uintptr_t>(memory_.get()) + kBytes;
  const std::uintptr_t top = (end - shift) / kAlignment * kAlignment;
  auto** slots = reinterpret_cast<void**>(top) - 8;
  for (int slot = 0; slot < 8; ++slot) slots[slot] = nullptr;
  slots[6] = reinterpret_cast<void*>(entry);
  position_ = slots;
#if defined(__SANITIZE_THREAD__)
  fiber_ = __tsan_create_fiber(0);
#endif
}

Stack::~Stack() {
#if defined(__SANITIZE_THREAD__)
  __tsan_destroy_fiber(fiber_);
#endif
}

void Stack::enter() {
#if defined(__SANITIZE_THREAD__)
  host_fiber_ = __tsan_get_current_fiber();
  __tsan_switch_to_fiber(fiber_, 0);
#endif
#if defined(__SANITIZE_ADDRESS__)
  void* fake_stack = nullptr;
  __sanitizer_start_switch_fiber(&fake_stack, memory_.get(), kBytes);
#endif
  switch_stack(&host_position_, position_);
#if defined(__SANITIZE_ADDRESS__)
  __sanitizer_finish_switch_fiber(fake_stack, nullptr, nullptr);
#endif
}

void Stack::leave() {
#if defined(__SANITIZE_THREAD__)
  __tsan_switch_to_fiber(host_fiber_, 0);
#endif
#if defined(__SANITIZE_ADDRESS__)
  __sanitizer_start_switch_fiber(&fiber_, host_bottom_, host_size_);
#endif
  switch_stack(&position_, host_position_);
  arrive();
}

void Stack::arrive() {
#if defined(__SANITIZE_ADDRESS__)
  __sanitizer_finish_switch_fiber(fiber_, &host_bottom_, &host_size_);
#endif
}

}  // namespace arbalest::tests::cuda_stand_in
