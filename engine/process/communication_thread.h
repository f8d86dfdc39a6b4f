// The communication thread owns the transport. It makes all calls of MPI, from its initialization to its end.
//
// The thread never blocks inside MPI, which would poll at full speed, and it does not spin: after a few microseconds
// without messages it sleeps, for longer and longer. New work of this process wakes it.
#pragma once

#include <atomic>
#include <condition_variable>
#include <cstdint>
#include <functional>
#include <memory>
#include <mutex>
#include <optional>
#include <string>
#include <thread>
#include <vector>

#include "engine/base/error.h"
#include "engine/process/last_exit.h"
#include "engine/process/phase.h"
#include "engine/process/turn_queue.h"
#include "engine/process/watchdog.h"

namespace arbalest::engine::process {

class Progress;

struct CommunicationOptions {
  WatchdogOptions watchdog = {};
  // MPI waits for all processes when it starts. If that takes longer, the process ends with exit code 8.
  double start_timeout_seconds = 120.0;
  // After a failure the owner has this long to call abort() or to destroy the thread. Then the process is ended.
  double owner_ends_seconds = 3.0;
  // Gives the exit code of a process that is ended because of an error of its own. If it is empty, the code is 8.
  std::function<int(ErrorKind kind)> exit_code = {};
};

class CommunicationThread {
 public:
  using Open = std::function<std::unique_ptr<Transport>()>;

  // Calls `open` on the thread. Returns when the transport is open, or throws the error of `open`.
  CommunicationThread(Open open, CommunicationOptions options);
  // Without close() the other processes notice that this one is silent.
  ~CommunicationThread();
  CommunicationThread(const CommunicationThread&) = delete;
  CommunicationThread& operator=(const CommunicationThread&) = delete;

  // Other threads may ask it only for numbers and names.
  const Transport& transport() const noexcept { return *transport_; }

  // Any thread may call the following functions.
  void start(Submission& submission);
  bool is_done(const Submission& submission);
  // Blocks until the operation is done. Throws kPeer if another process has died or failed, and the error of this
  // process if it has announced one; then every later wait() throws the same error, and the operation is no longer
  // used. Throws kInternal after close().
  void wait(const Submission& submission);

  // Call it when this process cannot go on; the others get to know the reason. Every wait() throws the error then. If
  // the owner does not call abort(), the thread prints the error and ends all processes with the exit code of its kind.
  void announce_failure(const Error& error);
  // Throws what wait() throws, if another process has died or failed, or this one has announced an error. Waits up to
  // `seconds` for that to happen.
  void check(double seconds);
  void set_position(const Position& position) noexcept;
  void set_peer_timeout(double seconds) noexcept;
  // Sets how many all-reduces this process has enqueued (Progress::set_enqueued).
  void set_enqueued(std::uint64_t all_reduces) noexcept { enqueued_ = all_reduces; }
  // Any thread may begin such work while another one is at it (World::FileWork).
  void begin_file_work() noexcept { ++file_works_; }
  void end_file_work() noexcept { --file_works_; }
  // Watches a number that becomes a signal's when that asks for a polite stop (Progress::request_stop). It must outlive
  // the thread. If the process must end at once, the exit code is 128 + the signal.
  void watch_stop(const std::atomic<int>& signal) noexcept { stop_signal_ = &signal; }
  double peer_timeout() const noexcept { return peer_timeout_; }

  // Ends the communication politely: waits until all processes have called it. No operation may be under way. Throws
  // like wait().
  void close();
  // Ends all processes with this exit code. It first leaves the other ranks a second to print their messages.
  [[noreturn]] void abort(int exit_code);

  // Returns the CPU time of the thread.
  double cpu_seconds() const;

 private:
  enum class Stage { kOpening, kOpen, kClosed, kFailed, kNotOpened };

  void run(const Open& open);
  void communicate(Progress& progress);
  bool take_orders(Progress& progress);
  bool settle(Progress& progress);
  void publish(Stage stage, const std::optional<Error>& failure);
  void look_for_stop(Progress& progress);

  // communication_end.cc
  void close_transport();
  void arm_last_exit(const Error& failure, bool ends_at_once);
  void end_after_failure(const Error& failure, bool is_error_of_other_rank);
  [[noreturn]] void end_at_once(const Error& failure);
  int exit_code_of(const Error& failure, bool ends_at_once) const;
  // Returns the time from the news of a failure to the end of a process that does not end by itself.
  double last_exit_seconds() const noexcept;

  const CommunicationOptions options_;
  LastExit last_exit_;
  std::unique_ptr<Transport> transport_;
  std::atomic<std::uint64_t> position_{0};  // round * 256 + phase
  std::atomic<double> peer_timeout_;
  std::atomic<int> file_works_{0};
  std::atomic<std::uint64_t> enqueued_{0};  // all-reduces
  std::atomic<const std::atomic<int>*> stop_signal_{nullptr};

  std::mutex mutex_;
  std::condition_variable ordered_;  // the thread sleeps here
  std::condition_variable changed_;  // everybody else waits here
  Stage stage_ = Stage::kOpening;
  std::optional<Error> failure_;  // set with kFailed and kNotOpened
  TurnQueue queue_;               // operations that the thread has not taken
  bool has_orders_ = false;
  bool wants_close_ = false;
  bool stops_ = false;
  std::optional<int> abort_code_;
  std::optional<Error> failure_here_;

  // Used by the thread only.
  std::vector<Submission*> active_;
  std::size_t started_ = 0;  // number of active operations that have been started
  int stopped_by_ = 0;       // the signal that has asked for a stop

  std::thread thread_;
};

// A process that ends because another one has died has this exit code (messages/exit_codes.h).
inline constexpr int kPeerExitCode = 8;

}  // namespace arbalest::engine::process
