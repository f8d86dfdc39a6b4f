// The cores of one machine run at different speeds (neighbors on the host, shared execution units), and a round of
// averaging is as slow as its slowest learner. So the thread of a stream that has to wait lends its core, which is idle
// from then on and was fast enough to get here first, to the stream that it waits for in the end: that one's thread is
// moved there. What it brings: bench/results.
#pragma once

#include <sched.h>

#include <atomic>
#include <deque>

namespace arbalest::engine::cpu {

// Among the streams of one device whose threads go where the system puts them. Outlives those streams.
class CoreLending {
 public:
  // One stream's part in it.
  class Seat {
   private:
    friend class CoreLending;
    std::atomic<pid_t> thread_{0};  // 0: the seat is free or its thread has not started
    std::atomic<bool> taken_{false};
    std::atomic<bool> lends_{false};
    std::atomic<const Seat*> waits_for_{nullptr};
  };

  // A span in which the thread of `seat` waits for the stream of `other`.
  class Wait {
   public:
    Wait(const CoreLending& lending, Seat& seat, const Seat& other);
    ~Wait();
    Wait(const Wait&) = delete;
    Wait& operator=(const Wait&) = delete;

   private:
    const CoreLending& lending_;
    Seat& seat_;
    pid_t moved_ = 0;  // the thread that runs on this one's core meanwhile
  };

  CoreLending();

  // A stream that has no core of its own (averaging) is lent cores, but `lends` none. Seats are reused and never freed:
  // whoever follows a chain of waits may read one that was just left.
  Seat& reserve(bool lends);
  void leave(Seat& seat) const;
  // By the stream's own thread, before its first wait.
  void enter(Seat& seat) const;

 private:
  cpu_set_t all_;  // where threads may run
  std::deque<Seat> seats_;
};

}  // namespace arbalest::engine::cpu
