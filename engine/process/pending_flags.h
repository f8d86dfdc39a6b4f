// Unites flags of all ranks while the process does other work.
#pragma once

#include <cstdint>
#include <memory>
#include <mutex>
#include <vector>

namespace arbalest::engine::process {

class CommunicationThread;
class FlagPool;

// PendingFlags is a union of flags over all ranks that is under way.
class PendingFlags {
 public:
  PendingFlags(PendingFlags&& other) noexcept;
  PendingFlags& operator=(PendingFlags&& other) noexcept;
  ~PendingFlags();  // blocks like wait()

  bool is_done();
  // Blocks, and returns the flags that any rank has given. Throws like PreparedAllReduce::wait.
  std::uint64_t wait();

 private:
  friend class FlagPool;
  struct Run;
  struct Release {
    FlagPool* pool;
    void operator()(Run* run) const;
  };

  explicit PendingFlags(std::uint64_t flags);
  explicit PendingFlags(std::unique_ptr<Run, Release> run);

  std::uint64_t flags_ = 0;            // of a single process
  std::unique_ptr<Run, Release> run_;  // null in a single process
};

// Keeps the memory of past unions for later ones, so that a round allocates nothing. It must outlive what it has
// started.
class FlagPool {
 public:
  // `communication`: null in a single process.
  explicit FlagPool(CommunicationThread* communication);
  ~FlagPool();
  FlagPool(const FlagPool&) = delete;
  FlagPool& operator=(const FlagPool&) = delete;

  PendingFlags start(std::uint64_t flags, int channel);

 private:
  friend class PendingFlags;

  CommunicationThread* const communication_;
  std::mutex mutex_;
  std::size_t runs_ = 0;  // number of runs that exist; idle_ has room for all
  std::vector<std::unique_ptr<PendingFlags::Run>> idle_;
};

}  // namespace arbalest::engine::process
