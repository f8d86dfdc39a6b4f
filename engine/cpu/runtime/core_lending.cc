#include "engine/cpu/runtime/core_lending.h"

#include <unistd.h>

#include <algorithm>

namespace arbalest::engine::cpu {

namespace {

// Errors are ignored: the thread then stays where it is.
void allow(pid_t thread, const cpu_set_t& cores) { static_cast<void>(sched_setaffinity(thread, sizeof cores, &cores)); }

}  // namespace

CoreLending::CoreLending() {
  CPU_ZERO(&all_);
  static_cast<void>(sched_getaffinity(0, sizeof all_, &all_));
}

CoreLending::Seat& CoreLending::reserve(bool lends) {
  auto free = std::find_if(seats_.begin(), seats_.end(), [](const Seat& seat) { return !seat.taken_; });
  Seat& seat = free != seats_.end() ? *free : seats_.emplace_back();
  seat.taken_ = true;
  seat.lends_ = lends;
  return seat;
}

void CoreLending::leave(Seat& seat) const {
  seat.thread_ = 0;
  seat.taken_ = false;
}

void CoreLending::enter(Seat& seat) const { seat.thread_ = gettid(); }

CoreLending::Wait::Wait(const CoreLending& lending, Seat& seat, const Seat& other) : lending_(lending), seat_(seat) {
  seat_.waits_for_ = &other;
  if (!seat_.lends_) return;
  // Learner -> averaging -> learner is the longest chain. The bound also ends a chain that changes while it is read.
  constexpr int kLongestChain = 3;
  const Seat* last = &other;
  for (int i = 0; i < kLongestChain; ++i) {
    const Seat* next = last->waits_for_;
    if (next == nullptr) break;
    last = next;
  }
  const pid_t thread = last->thread_;
  const int core = sched_getcpu();
  if (last == &seat_ || thread == 0 || core < 0) return;
  cpu_set_t here;
  CPU_ZERO(&here);
  CPU_SET(static_cast<std::size_t>(core), &here);
  allow(thread, here);
  moved_ = thread;
}

CoreLending::Wait::~Wait() {
  if (moved_ != 0) allow(moved_, lending_.all_);
  seat_.waits_for_ = nullptr;
}

}  // namespace arbalest::engine::cpu
