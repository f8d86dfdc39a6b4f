// The World holds all processes of a job. A process that was started by itself is a world of size 1, without threads or
// MPI. Nothing outside this folder knows how processes reach each other.
#pragma once

#include <atomic>
#include <cstdint>
#include <filesystem>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "engine/process/communication_thread.h"
#include "engine/process/launch.h"
#include "engine/process/mailbox.h"
#include "engine/process/module_transport.h"
#include "engine/process/operations/all_reduce.h"
#include "engine/process/pending_flags.h"
#include "engine/process/phase.h"

namespace arbalest::engine::process {

enum class AllReduceMethod {
  kCanonical,  // the order of additions is a pairwise tree over ranks (operations/all_reduce.h)
  kLibrary     // the order of additions is up to MPI
};

// An all-reduce of one vector is prepared once and run in every round. Its runs allocate nothing.
class PreparedAllReduce {
 public:
  // `values` must stay valid as long as this object.
  PreparedAllReduce(CommunicationThread* communication, std::span<float> values, AllReduceMethod method,
                    const AllReduceOptions& options);
  ~PreparedAllReduce();  // it must not be under way

  // Starts the run that World::next_turn() has numbered, and returns. `values` must not be touched until wait() returns
  // or throws. Any thread may call.
  void start(std::uint64_t turn);
  bool is_done();
  // Blocks until `values` holds the sum over ranks. Throws kPeer if another process has died or failed. Only the
  // threads of streams block here.
  void wait();

 private:
  CommunicationThread* const communication_;  // null: one process
  std::unique_ptr<Operation> operation_;
  Submission submission_;
};

// One thread of a process makes the calls of this class, except where a comment allows any thread. All ranks must make
// the same calls of `broadcast` to `start_flags` in the same order. Those block, and throw kPeer with the rank's name
// if another process dies, stops or fails. After that only abort() remains.
class World {
 public:
  // Makes the world of a single process.
  World() : flags_(nullptr) {}
  // Makes a world over any transport, such as that of a test. `open` is called on the communication thread.
  World(CommunicationThread::Open open, CommunicationOptions options);
  ~World();
  World(const World&) = delete;
  World& operator=(const World&) = delete;

  int rank() const noexcept { return rank_; }
  int size() const noexcept { return size_; }
  // These are the number of this process among those of its host, and their number.
  int local_rank() const noexcept { return local_rank_; }
  int local_size() const noexcept { return local_size_; }
  // Returns the host of a rank. A single process calls its own "localhost".
  const std::string& host(int rank) const { return hosts_.at(static_cast<std::size_t>(rank)); }
  // Names a rank in messages: "rank 2 on host b".
  std::string place(int rank) const { return place_of(rank, host(rank)); }

  // Replaces `bytes` on every rank by the bytes of `root`.
  void broadcast(std::string& bytes, int root = 0);
  // Returns the bytes of each rank on rank 0, and nothing on the other ranks.
  std::vector<std::string> gather(std::string_view bytes);
  // Returns the ranks whose value differs from that of rank 0. All ranks get the same answer.
  std::vector<int> agree(std::string_view value);
  // Returns when all ranks have called it.
  void barrier();
  // Returns the flags that any rank gives.
  std::uint64_t any_of(std::uint64_t flags);
  // Starts an any_of and returns at once. A request for a polite stop is such a flag. Allocates only when more of them
  // are under way than ever before.
  PendingFlags start_flags(std::uint64_t flags);

  // These bring bytes from one rank to another, beside everything else. They block, and throw like the operations. Any
  // thread may call, but only one at a time for the same other rank. A rank receives in the order of the sends.
  void send(std::string_view bytes, int to);
  std::string receive(int from);

  // Runs an exchange of a split model, for which all ranks have an operation. Blocks, and throws like the operations.
  // Any thread may call, but only one at a time, and all ranks must run the same exchanges in the same order.
  void exchange(Operation& operation);

  // Returns the messages between this process and the others, which a world of several processes has. All processes
  // must ask for them, or none. One thread makes the first call.
  Mailbox& mailbox();

  // Sets the method for the vectors that are prepared from now on.
  void set_all_reduce(AllReduceMethod method, const AllReduceOptions& options = {}) noexcept {
    all_reduce_method_ = method;
    all_reduce_options_ = options;
  }
  // Prepares the all-reduce of a vector, which must outlive the result. Throws kOutOfMemory. Any thread may call.
  std::unique_ptr<PreparedAllReduce> prepare_all_reduce(std::span<float> values);
  // Draws the number of the next all-reduce. Call it where work is enqueued, because all ranks enqueue in the same
  // order; streams may run the all-reduces in another order.
  std::uint64_t next_turn() noexcept;

  // Tells what this process is doing. Heartbeats carry it. Any thread may call.
  void set_position(std::uint64_t round, Phase phase) noexcept;
  // A process that is silent for longer counts as dead. Any thread may call.
  void set_peer_timeout(double seconds) noexcept;
  // While one of these lives, this process works on files and keeps the others waiting, for as long as that takes. They
  // do not take it, or another one that waits for it, for a process that hangs. Any thread may make one.
  class FileWork {
   public:
    explicit FileWork(const World& world);
    ~FileWork();
    FileWork(const FileWork&) = delete;
    FileWork& operator=(const FileWork&) = delete;

   private:
    CommunicationThread* const communication_;
  };
  // Watches a number that becomes a signal's when that asks this process for a polite stop. If another process does not
  // answer within a second, the run ends at once, with exit code 128 + the signal. `signal` must outlive the world.
  void watch_stop(const std::atomic<int>& signal) noexcept;
  double peer_timeout() const noexcept;
  // Throws like the operations if another process has died or failed. Loops that wait for a GPU call it, because the
  // GPU may wait for another process for ever. Waits up to `seconds` for such a failure. Any thread may call.
  void check(double seconds = 0.0) const;
  // This process cannot go on; the others name it and the reason. Call abort() as soon as the error has been printed:
  // without it the process is ended after CommunicationOptions::owner_ends_seconds. Any thread may call.
  void announce_failure(const Error& error);

  // Ends the communication politely, at the end of a job that all processes reach. Throws like the operations.
  void close();
  // Ends all processes at once; `exit_code` becomes the launcher's. Call it after the error has been printed. Any
  // thread may call.
  [[noreturn]] void abort(int exit_code);

  // Returns the CPU time of the communication thread, or 0 for a single process.
  double communication_cpu_seconds() const;

 private:
  void run(Operation& operation);
  void run_on(Operation& operation, int channel);

  std::unique_ptr<Mailbox> mailbox_;  // outlives the thread that uses it; null: nobody has asked for it
  std::unique_ptr<CommunicationThread> communication_;  // null: one process
  FlagPool flags_;
  int rank_ = 0;
  int size_ = 1;
  int local_rank_ = 0;
  int local_size_ = 1;
  std::vector<std::string> hosts_ = {"localhost"};
  AllReduceMethod all_reduce_method_ = AllReduceMethod::kCanonical;
  AllReduceOptions all_reduce_options_;
  std::uint64_t controls_ = 0;  // operations on bytes and flags so far
  std::uint64_t turns_ = 0;     // all-reduces so far
};

// Returns the world of the processes that a launcher has started, or of a single process without one. Throws kUsage if
// there is no MPI module in `directories`, or if it has not the processes of the launcher.
std::unique_ptr<World> open_world(const std::optional<Launch>& launch, const CommunicationOptions& options,
                                  const std::vector<std::filesystem::path>& directories = module_directories());

}  // namespace arbalest::engine::process
