// A barrier for the streams of an all-reduce or exchange, which a failing rank can break for all ranks.
#pragma once

#include <condition_variable>
#include <cstdint>
#include <mutex>

#include "engine/base/error.h"

namespace arbalest::engine::cpu {

class Meeting {
 public:
  // `what`: what the ranks do together, for errors.
  explicit Meeting(int ranks, const char* what = "all-reduce") : ranks_(ranks), what_(what) {}

  void arrive_and_wait() {
    std::unique_lock lock(mutex_);
    check();
    const std::uint64_t round = round_;
    if (++arrived_ == ranks_) {
      arrived_ = 0;
      ++round_;
      all_here_.notify_all();
      return;
    }
    all_here_.wait(lock, [&] { return round_ != round || broken_; });
    if (round_ == round) check();
  }

  void break_up() noexcept {
    {
      const std::lock_guard lock(mutex_);
      broken_ = true;
    }
    all_here_.notify_all();
  }

 private:
  void check() const {
    if (broken_) fail(ErrorKind::kPeer, "another device of the {} has failed", what_);
  }

  const int ranks_;
  const char* const what_;
  std::mutex mutex_;
  std::condition_variable all_here_;
  int arrived_ = 0;
  std::uint64_t round_ = 0;
  bool broken_ = false;
};

}  // namespace arbalest::engine::cpu
