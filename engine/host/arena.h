// The only access to oneTBB; no header includes oneTBB's headers.
#pragma once

#include <memory>

namespace arbalest::engine::host {

// Up to `threads` oneTBB worker threads, started when first needed and shared by all arenas of the process.
class Arena {
 public:
  explicit Arena(int threads);
  ~Arena();  // no work may be enqueued or running
  Arena(const Arena&) = delete;
  Arena& operator=(const Arena&) = delete;

  // Calls `work(context)` some time later on a worker thread. Throws ErrorKind::kDevice if no worker can be started.
  void enqueue(void (*work)(void* context) noexcept, void* context);

 private:
  struct Impl;
  std::unique_ptr<Impl> impl_;
};

}  // namespace arbalest::engine::host
