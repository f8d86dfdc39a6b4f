// Cores of one machine run at different speeds (neighbors on the host, shared execution units), and a round of
// averaging is as slow as its slowest learner. So a waiting stream lends its core to the stream at the end of its chain
// of waits: that stream's thread is moved to the lent core. The lent core would otherwise be idle. Its own stream
// finished first, so the core is fast. The effect is measured in bench/results.
#pragma once

#include <sched.h>

#include <atomic>
#include <deque>

namespace arbalest::engine::cpu {

// Lends cores between the streams of one device whose threads are not pinned. Must outlive those streams.
class CoreLending {
 public:
  // The state of one stream.
  class Seat {
   private:
    friend class CoreLending;
    std::atomic<pid_t> thread_{0};  // 0: the seat is free or its thread has not started
    std::atomic<bool> taken_{false};
    std::atomic<bool> lends_{false};
    std::atomic<const Seat*> waits_for_{nullptr};
  };

  // A span of time in which the thread of `seat` waits for the stream of `other`.
  class Wait {
   public:
    Wait(const CoreLending& lending, Seat& seat, const Seat& other);
    ~Wait();
    Wait(const Wait&) = delete;
    Wait& operator=(const Wait&) = delete;

   private:
    const CoreLending& lending_;
    Seat& seat_;
    pid_t moved_ = 0;  // thread that runs on this thread's core meanwhile
  };

  CoreLending();

  // A stream without a dedicated core (averaging) borrows cores but does not lend: `lends` is false. Seats are reused
  // and never freed, because a thread that follows a chain of waits may read a seat that was just left.
  Seat& reserve(bool lends);
  void leave(Seat& seat) const;
  // Called by the stream's own thread before its first wait.
  void enter(Seat& seat) const;

 private:
  cpu_set_t all_;  // cores on which threads may run
  std::deque<Seat> seats_;
};

}  // namespace arbalest::engine::cpu
