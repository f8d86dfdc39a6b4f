// Runs the operations and the watchdog of one rank over its transport. It has no thread and reads no clock: the
// communication thread (communication_thread.h) calls step(), and so does the simulated cluster of the tests.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "engine/base/error.h"
#include "engine/process/awake_clock.h"
#include "engine/process/operations/operation.h"
#include "engine/process/watchdog.h"

namespace arbalest::engine::process {

class Progress {
 public:
  enum class State {
    kRunning,
    kSpreading,  // a rank has failed, and the news are on their way to the others
    kFailed,     // nothing polls the transport again, so all buffers may be freed
    kClosing,    // waits for the shutdown handshake of all ranks
    kClosed
  };

  Progress(Transport& transport, WatchdogOptions options, double now);

  Watchdog& watchdog() noexcept { return watchdog_; }
  State state() const noexcept { return state_; }
  // Returns the failure in the states kSpreading and kFailed.
  const std::optional<Error>& failure() const noexcept { return failure_; }

  // Returns whether the failure is an error of another rank's own.
  bool is_error_of_other_rank() const noexcept { return watchdog_.is_error_of_other_rank(); }

  // Starts an operation of all ranks, in kRunning only. It must live until it is forgotten or the state is kFailed:
  // once there is a failure, not even a done operation may be freed before kFailed.
  void start(Operation& operation, int channel);
  // Sets how many all-reduces this rank has enqueued. Their streams may start them later.
  void set_enqueued(std::uint64_t all_reduces) noexcept { enqueued_ = all_reduces; }
  // Forgets an operation that is done.
  void forget(const Operation& operation);

  // Moves everything on that can be moved. Returns whether a message has ended; then call it again at once.
  bool step(double now);
  // Without messages, step() has nothing to do before this time.
  double next_step() const noexcept { return watchdog_.next_tick(); }

  // A signal asks this process for a polite stop, which takes the agreement of all ranks. If the communication thread
  // of any rank does not answer within kAnswerSeconds, this rank fails, and must_end_at_once(). A rank that computes
  // for a long time does answer. From then on all ranks count a rank as hanging that is kStopTimeouts peer timeouts
  // late for an operation, if no other operation has ended in that time.
  void request_stop() noexcept { calls_ = true; }
  bool must_end_at_once() const noexcept { return ends_at_once_; }

  // Makes this rank fail. The others get to know the reason.
  void fail_here(const Error& error);
  // Begins the polite end. All operations of this rank must be done, and it starts no further one.
  void close();

 private:
  struct Active {
    const Operation* operation;
    int channel;
    double since;  // on the clock awake_
  };
  struct Broken {
    int peer;
    std::string reason;
    double since;
  };

  template <typename Body>
  void attempt(const Body& body);
  void check_for_failure();
  void check_connection();
  void check_operations();
  void check_operation(const Active& active, int peer);
  bool waits(const Active& active) const;
  bool is_late(int channel) const;
  bool has_come_to(int channel) const;
  bool is_too_late(double since) const;
  void check_end();
  void check_stop();
  void blame(int peer, const std::string& reason);
  void blame_hanging(int peer, double waited, const std::string& where);

  Transport& transport_;
  Watchdog watchdog_;
  State state_ = State::kRunning;
  std::optional<Error> failure_;
  double now_;
  AwakeClock awake_;  // it does not count the time in which this process was stopped itself
  double spread_until_ = 0.0;
  double closing_since_ = 0.0;  // on the clock awake_
  double worked_at_ = 0.0;      // on the clock awake_: when last any rank worked on files
  double moved_at_ = 0.0;       // on the clock awake_: when last an operation of all ranks has ended
  bool calls_ = false;
  bool has_called_ = false;
  std::optional<double> called_at_;  // on the clock awake_, while answers to the call are missing
  std::optional<double> stop_at_;    // on the clock awake_: when this rank heard that a signal asks for a stop
  bool ends_at_once_ = false;
  std::vector<Active> active_;
  std::uint64_t enqueued_ = 0;
  int last_control_ = kSignalChannel;  // channel of the last operation on bytes or flags that has been started
  std::vector<Broken> broken_;         // connections that have failed, in order
};

// The news of a failure get this long to leave.
inline constexpr double kSpreadSeconds = 1.0;
// All ranks have this long to hear of a polite stop.
inline constexpr double kAnswerSeconds = 1.0;
// A rank that keeps others waiting for so many peer timeouts prevents a polite stop.
inline constexpr double kStopTimeouts = 2.0;

}  // namespace arbalest::engine::process
