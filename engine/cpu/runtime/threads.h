// The only access to thread settings of OpenMP and the system. Debian's oneDNN runs on libgomp, whose thread count is a
// setting of the calling thread. A primitive keeps the count under which it was created.
#pragma once

namespace arbalest::engine::cpu {

// Sets the number of threads of OpenMP regions that the calling thread enters.
void set_thread_count(int threads);

// Sets the calling thread's count in a scope: primitives created there are made for that many threads.
class ThreadCountScope {
 public:
  explicit ThreadCountScope(int threads);
  ~ThreadCountScope();
  ThreadCountScope(const ThreadCountScope&) = delete;
  ThreadCountScope& operator=(const ThreadCountScope&) = delete;

 private:
  int before_;
};

}  // namespace arbalest::engine::cpu
