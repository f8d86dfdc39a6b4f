#include "engine/process/turn_queue.h"

namespace arbalest::engine::process {

void TurnQueue::take_ready(std::vector<Submission*>& ready) {
  for (std::size_t i = 0; i < waiting_.size();) {
    Submission* const submission = waiting_[i];
    if (submission->waits_for_turn && submission->turn != next_turn_) {
      ++i;
      continue;
    }
    waiting_.erase(waiting_.begin() + static_cast<std::ptrdiff_t>(i));
    ready.push_back(submission);
    if (submission->turn) {
      pass(*submission->turn);
      i = 0;  // others may have waited for it
    }
  }
}

void TurnQueue::pass(std::uint64_t turn) {
  later_turns_.push_back(turn);
  while (std::erase(later_turns_, next_turn_) > 0) ++next_turn_;
}

}  // namespace arbalest::engine::process
