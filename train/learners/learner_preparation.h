// Makes and frees learners on a thread of its own, while others train.
#pragma once

#include <future>
#include <vector>

#include "train/session/session.h"

namespace arbalest::jobs {

class LearnerPreparation {
 public:
  // The session must outlive it.
  explicit LearnerPreparation(Session& session) : session_(session) {}
  ~LearnerPreparation() { wait(); }
  LearnerPreparation(const LearnerPreparation&) = delete;
  LearnerPreparation& operator=(const LearnerPreparation&) = delete;

  // Begins to prepare this number of learners, by device, in teams of this size, after what was begun before (Session).
  void start(const std::vector<int>& learners_per_device, int team);
  // Begins to free idle learners.
  void release();

  // Whether nothing is under way.
  bool is_done() const;
  void wait() const;
  // Waits, and throws what the preparation threw; a second call does not throw again.
  void take();

 private:
  Session& session_;
  std::future<void> work_;
};

}  // namespace arbalest::jobs
