// An observer that holds tasks and drops waits, to prove without a clock which tasks overlap.
#pragma once

#include <chrono>
#include <condition_variable>
#include <map>
#include <mutex>
#include <set>
#include <string>
#include <utility>

#include "engine/stream.h"
#include "engine/stream_observer.h"

namespace arbalest::tests {

// Holds tasks with one label until released, counts finished tasks by label, and drops waits with some labels. A check
// that no task runs waits for the grace period kGrace. A check that a task runs waits up to kPatience.
class Latch final : public engine::StreamObserver {
 public:
  void before_task(const engine::Stream& stream, const engine::TaskInfo& task) override {
    std::unique_lock lock(mutex_);
    if (task.label != held_ || begun_[&stream]++ < passing_) return;
    changed_.wait(lock, [&] { return task.label != held_; });
  }
  void after_task(const engine::Stream&, const engine::TaskInfo& task) override {
    const std::lock_guard lock(mutex_);
    ++finished_[task.label];
    changed_.notify_all();
  }
  bool drops_wait(const engine::Stream&, const char* label) override {
    const std::lock_guard lock(mutex_);
    return dropped_.contains(label);
  }

  // Holds tasks with this label from now on, except for the first `passing` of them on each stream.
  void hold(const std::string& label, int passing = 0) {
    const std::lock_guard lock(mutex_);
    held_ = label;
    passing_ = passing;
    begun_.clear();
    changed_.notify_all();
  }
  void release() { hold(""); }
  void drop_waits(std::set<std::string> labels) {
    const std::lock_guard lock(mutex_);
    dropped_ = std::move(labels);
  }
  int finished(const std::string& label) {
    const std::lock_guard lock(mutex_);
    return finished_[label];
  }
  // Returns true once `count` tasks of `label` have finished; false if they have not after the grace period.
  bool reaches(const std::string& label, int count, std::chrono::milliseconds grace) {
    std::unique_lock lock(mutex_);
    return changed_.wait_for(lock, grace, [&] { return finished_[label] >= count; });
  }

 private:
  std::mutex mutex_;
  std::condition_variable changed_;
  std::string held_;
  int passing_ = 0;
  std::set<std::string> dropped_;
  std::map<std::string, int> finished_;
  std::map<const engine::Stream*, int> begun_;  // tasks with the held label, by stream
};

// Releases the latch at the end of a scope, even if an assertion fails. Declare it after the rig: the rig's destructor
// waits for tasks, so the latch must be released first.
class ReleaseAtEnd {
 public:
  explicit ReleaseAtEnd(Latch& latch) : latch_(latch) {}
  ~ReleaseAtEnd() { latch_.release(); }
  ReleaseAtEnd(const ReleaseAtEnd&) = delete;
  ReleaseAtEnd& operator=(const ReleaseAtEnd&) = delete;

 private:
  Latch& latch_;
};

inline constexpr std::chrono::milliseconds kGrace{300};       // while nothing is expected to happen
inline constexpr std::chrono::milliseconds kPatience{60000};  // while something is expected to happen

// Returns whether more than `expected` tasks of `label` finish. If a wait was dropped, all `more` tasks must finish.
// Otherwise one more task within the grace period is enough.
inline bool goes_beyond(Latch& latch, const std::string& label, int expected, int more, bool is_dropped) {
  return is_dropped ? latch.reaches(label, expected + more, kPatience) : latch.reaches(label, expected + 1, kGrace);
}

}  // namespace arbalest::tests
