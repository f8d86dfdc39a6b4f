#include "engine/process/progress.h"

#include <algorithm>
#include <exception>
#include <new>
#include <utility>

namespace arbalest::engine::process {

Progress::Progress(Transport& transport, WatchdogOptions options, double now)
    : transport_(transport), watchdog_(transport, std::move(options), now), now_(now), awake_(now) {
  watchdog_.on_question([this](int channel) {
    return std::ranges::any_of(active_, [channel](const Active& active) { return active.channel == channel; });
  });
}

void Progress::start(Operation& operation, int channel) {
  ARBALEST_CHECK(state_ == State::kRunning);
  active_.push_back({&operation, channel, awake_.seconds()});
  attempt([&] { operation.start(transport_, channel); });
}

// Runs `body`. An error that it throws becomes the failure of this rank, unless a connection has failed.
template <typename Body>
void Progress::attempt(const Body& body) {
  try {
    body();
  } catch (const ConnectionError& error) {
    broken_.push_back({error.peer(), error.what(), now_});
  } catch (const Error& error) {
    fail_here(error);
  } catch (const std::bad_alloc&) {
    fail_here({ErrorKind::kOutOfMemory, "out of memory for the messages between processes"});
  } catch (const std::exception& error) {
    fail_here({ErrorKind::kInternal, error.what()});
  }
}

void Progress::forget(const Operation& operation) {
  std::erase_if(active_, [&](const Active& active) { return active.operation == &operation; });
}

bool Progress::step(double now) {
  const bool was_stopped = now - now_ > kLongestPause;  // the others may have had no time to answer
  awake_.advance(now);
  if (calls_ || (called_at_ && was_stopped)) {
    calls_ = false;
    called_at_ = awake_.seconds();
    watchdog_.call_all();
  }
  now_ = now;
  if (state_ == State::kFailed || state_ == State::kClosed) return false;
  bool moved = false;
  bool beats = false;
  attempt([&] {
    beats = watchdog_.tick(now);
    moved = transport_.poll();
  });
  if (state_ == State::kRunning || state_ == State::kClosing) check_for_failure();
  if (state_ == State::kRunning || state_ == State::kClosing) check_connection();
  if (state_ == State::kRunning || state_ == State::kClosing) check_stop();
  if (beats && state_ == State::kRunning) check_operations();
  if (beats && state_ == State::kClosing) check_end();
  if (state_ == State::kClosing && watchdog_.is_closed()) state_ = State::kClosed;
  if (state_ == State::kSpreading && (watchdog_.has_spread_failure() || now >= spread_until_)) state_ = State::kFailed;
  return moved;
}

void Progress::check_for_failure() {
  if (!watchdog_.failure()) return;
  failure_ = Error(ErrorKind::kPeer, *watchdog_.failure());
  state_ = State::kSpreading;
  spread_until_ = now_ + kSpreadSeconds;
}

// A rank that has an error of its own tells the reason before its process ends, so the news get the time to arrive.
void Progress::check_connection() {
  if (broken_.empty() || now_ - broken_.front().since < kSpreadSeconds) return;
  const Broken broken = std::move(broken_.front());
  broken_.erase(broken_.begin());
  if (watchdog_.has_parted(broken.peer)) return;  // its process has ended, and nobody waits for it
  blame(broken.peer, fmt::format("rank {} on host {} is dead or cut off: its connection with rank {} has failed ({}). "
                                 "Look at its output and at its host, and resume the run",
                                 broken.peer, transport_.host(broken.peer), transport_.rank(), broken.reason));
}

// The connection of two ranks that do not watch each other may be cut, and a rank whose program hangs still sends
// heartbeats. So a rank asks those that it waits for: first the oldest operation that waits for them.
void Progress::check_operations() {
  for (int peer = 0; peer < transport_.size(); ++peer) {
    if (peer == transport_.rank()) continue;
    const auto waiting = std::ranges::find_if(active_, [peer](const Active& active) {
      return !active.operation->done() && active.operation->waits_for(peer);
    });
    if (waiting != active_.end()) check_operation(*waiting, peer);
    if (state_ != State::kRunning) return;
  }
}

void Progress::check_operation(const Active& active, int peer) {
  const double waited = awake_.seconds() - active.since;
  if (waited < watchdog_.peer_timeout()) return;
  // The programs of the ranks have lost step: one has ended while another still waits for it. But the library's own
  // operations wait for all ranks as long as any is missing, so ranks that are cut off get the time to be named first.
  if (watchdog_.is_gone_since(peer, 3.0 * watchdog_.peer_timeout())) {
    return blame(peer, fmt::format("internal error: rank {} on host {} has ended, but rank {} still waits for it in an "
                                   "operation ({}); please report this",
                                   peer, transport_.host(peer), transport_.rank(), active.operation->name()));
  }
  if (waited >= watchdog_.operation_timeout() && watchdog_.has_denied(peer, active.channel)) {
    return blame(peer, fmt::format("rank {} on host {} hangs: it sends heartbeats, but others have waited for it for "
                                   "{:.0f} s in an operation ({}). Look at its output and at its host, and resume the "
                                   "run",
                                   peer, transport_.host(peer), waited, active.operation->name()));
  }
  watchdog_.ask(peer, active.channel);
}

// Each rank waits for the farewell of all others.
void Progress::check_end() {
  const double waited = awake_.seconds() - closing_since_;
  if (waited < watchdog_.peer_timeout()) return;
  for (int peer = 0; peer < transport_.size(); ++peer) {
    if (peer == transport_.rank() || watchdog_.has_said_farewell(peer)) continue;
    if (waited >= watchdog_.operation_timeout() && watchdog_.has_denied(peer, kSignalChannel)) {
      return blame(peer, fmt::format("rank {} on host {} hangs: it sends heartbeats, but others have waited for it for "
                                     "{:.0f} s at the end of the run. Look at its output and at its host",
                                     peer, transport_.host(peer), waited));
    }
    watchdog_.ask(peer, kSignalChannel);
  }
}

void Progress::check_stop() {
  if (!called_at_) return;
  const std::optional<int> missing = watchdog_.missing();
  if (!missing) return called_at_.reset();
  if (awake_.seconds() - *called_at_ < kAnswerSeconds) return;
  called_at_.reset();
  ends_at_once_ = true;
  fail_here({ErrorKind::kPeer,
             fmt::format("a signal asks for a stop, but rank {} on host {} has not answered within {:g} s, so the run "
                         "ends at once; the model was not saved, and earlier checkpoints are intact",
                         *missing, transport_.host(*missing), kAnswerSeconds)});
}

void Progress::blame(int peer, const std::string& reason) {
  watchdog_.blame(peer, reason);
  check_for_failure();
}

void Progress::fail_here(const Error& error) {
  if (state_ == State::kSpreading || state_ == State::kFailed || state_ == State::kClosed) return;
  watchdog_.announce_failure(error.what());
  failure_ = error;
  state_ = State::kSpreading;
  spread_until_ = now_ + kSpreadSeconds;
}

void Progress::close() {
  ARBALEST_CHECK(active_.empty());
  if (state_ != State::kRunning) return;
  state_ = State::kClosing;
  closing_since_ = awake_.seconds();
  watchdog_.say_farewell();
}

}  // namespace arbalest::engine::process
