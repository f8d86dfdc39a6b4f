// The queue holds the operations that wait for their start. It has no thread and no mutex.
#pragma once

#include <cstdint>
#include <optional>
#include <vector>

#include "engine/process/operations/operation.h"

namespace arbalest::engine::process {

// A submission asks the communication thread to run an operation. Its owner may use it again when it has ended.
struct Submission {
  Operation* operation = nullptr;
  int channel = 0;
  std::optional<std::uint64_t> turn = {};  // 0, 1, 2, ... in the same order on every rank
  bool waits_for_turn = false;             // starts only after all earlier turns have started
  bool is_done = false;                    // guarded by the thread's mutex
};

class TurnQueue {
 public:
  void push(Submission& submission) { waiting_.push_back(&submission); }
  bool is_empty() const noexcept { return waiting_.empty(); }

  // Moves the operations that may start now to the end of `ready`, in the order in which they must start.
  void take_ready(std::vector<Submission*>& ready);

 private:
  void pass(std::uint64_t turn);

  std::vector<Submission*> waiting_;
  std::uint64_t next_turn_ = 0;             // all earlier turns have started
  std::vector<std::uint64_t> later_turns_;  // turns after it that have started
};

}  // namespace arbalest::engine::process
