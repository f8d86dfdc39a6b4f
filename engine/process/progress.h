// Runs the operations and the watchdog of one rank over its transport. No thread and no clock: the communication thread
// (communication_thread.h) calls step(), and so does the simulated cluster of the tests.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "engine/error.h"
#include "engine/process/operations/operation.h"
#include "engine/process/watchdog.h"

namespace arbalest::engine::process {

class Progress {
 public:
  enum class State {
    kRunning,
    kSpreading,  // a rank has failed, and the news are on their way to the others
    kFailed,     // nothing polls the transport again, so all buffers may be freed
    kClosing,    // waits for the farewell of all ranks
    kClosed
  };

  Progress(Transport& transport, WatchdogOptions options, double now);

  Watchdog& watchdog() noexcept { return watchdog_; }
  State state() const noexcept { return state_; }
  // In kSpreading and kFailed: what has failed.
  const std::optional<Error>& failure() const noexcept { return failure_; }

  // Starts an operation of all ranks, in kRunning only. It must live until it is done or the state is kFailed.
  void start(Operation& operation, int channel);
  // Forgets an operation that is done.
  void forget(const Operation& operation);

  // Moves everything on that can be moved. Returns whether a message has ended; then call it again at once.
  bool step(double now);
  // Without messages, step() has nothing to do before this time.
  double next_step() const noexcept { return watchdog_.next_tick(); }

  // This rank fails. The others get to know the reason.
  void fail_here(const Error& error);
  // This rank starts no further operation. All of its operations must be done.
  void close();

 private:
  void check_for_failure();
  void check_for_absent_peer();

  Transport& transport_;
  Watchdog watchdog_;
  State state_ = State::kRunning;
  std::optional<Error> failure_;
  double now_;
  double spread_until_ = 0.0;
  std::vector<const Operation*> active_;
};

// The news of a failure get this long to leave.
inline constexpr double kSpreadSeconds = 1.0;

}  // namespace arbalest::engine::process
