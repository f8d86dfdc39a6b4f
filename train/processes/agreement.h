// Decisions that all processes of a run must make at the same iteration, although only some have a reason.
#pragma once

#include <cstdint>
#include <deque>

#include "engine/process/world.h"

namespace arbalest::jobs {

// A process may ask for these between two iterations.
struct Requests {
  int stop_signal = 0;        // the signal that asks the run to stop; 0: none
  bool time_is_over = false;  // training.max_minutes
  bool save = false;          // a checkpoint is due, or asked for
  bool has_diverged = false;  // the scheduler has found a divergence that it keeps
  bool counts_skips = false;  // so many examples were left out that all processes must add up their numbers
  // These are for changes of the number of learners (shared_changes.h).
  bool has_change = false;    // rank 0 has chosen a change
  bool is_prepared = false;   // this process is done with preparing it; as an answer: all processes are
  bool lacks_memory = false;  // it did not fit
  bool is_writing = false;    // this process, which is not rank 0, writes its part of a checkpoint
  // An answer, never asked for: it is known that no process but rank 0 was writing.
  bool all_have_written = false;

  bool end_rounds() const { return stop_signal != 0 || time_is_over || has_diverged; }
};

class Agreement {
 public:
  // `world` must outlive it.
  explicit Agreement(engine::process::World& world) : world_(world) {}

  // Gives this process's requests after an iteration. Returns what any process asked for `lag` iterations ago, so that
  // no process waits for the others' messages; a single process gets its own requests at once. Of several signals the
  // one with the smallest number counts. All processes give the same lag; if it has become shorter, the iterations in
  // between count, too.
  Requests after_iteration(const Requests& own, int lag);
  // Drops requests that after_iteration() has not returned. Call it, on all processes, after acting on a request: the
  // same reason may have been given again meanwhile.
  void forget();
  // Blocks: returns what any process asks for now, and drops earlier requests.
  Requests now(const Requests& own);

 private:
  engine::process::World& world_;
  std::deque<engine::process::PendingFlags> pending_;  // oldest first
};

}  // namespace arbalest::jobs
