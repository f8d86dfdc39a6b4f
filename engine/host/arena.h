// The door to oneTBB: all of its headers are behind this file.
#pragma once

#include <memory>

namespace arbalest::engine::host {

// Up to `threads` worker threads of oneTBB, started when first needed, shared by all arenas of the process.
class Arena {
 public:
  explicit Arena(int threads);
  ~Arena();  // nothing may be enqueued or running
  Arena(const Arena&) = delete;
  Arena& operator=(const Arena&) = delete;

  // Calls `work(context)` some time later on a worker. Throws ErrorKind::kDevice if no worker can be started.
  void enqueue(void (*work)(void* context) noexcept, void* context);

 private:
  struct Impl;
  std::unique_ptr<Impl> impl_;
};

}  // namespace arbalest::engine::host
