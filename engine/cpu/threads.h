// The only place that speaks to OpenMP's and the system's thread settings. Debian's oneDNN runs on libgomp, whose
// thread count is a setting of the calling thread; a primitive keeps the count it was created under.
#pragma once

#include <vector>

namespace arbalest::engine::cpu {

// OpenMP regions entered by this thread use `threads` threads.
void set_thread_count(int threads);

// Sets the calling thread's count for a scope: primitives created in it are made for that many threads.
class ThreadCountScope {
 public:
  explicit ThreadCountScope(int threads);
  ~ThreadCountScope();
  ThreadCountScope(const ThreadCountScope&) = delete;
  ThreadCountScope& operator=(const ThreadCountScope&) = delete;

 private:
  int before_;
};

// Binds the calling thread to `cores`; does nothing for an empty list.
void pin_this_thread(const std::vector<int>& cores);

}  // namespace arbalest::engine::cpu
