#include "engine/process/progress.h"

#include <algorithm>
#include <exception>
#include <new>
#include <utility>

namespace arbalest::engine::process {

namespace {

constexpr const char* kLookAtPeer =
    "Look at its output and at its host, and start the run again, from its last checkpoint if it has one";

}  // namespace

Progress::Progress(Transport& transport, WatchdogOptions options, double now)
    : transport_(transport), watchdog_(transport, std::move(options), now), now_(now), awake_(now) {
  watchdog_.on_question([this](int channel) { return is_late(channel); });
}

// Whether this rank waits for another one in the operation.
bool Progress::waits(const Active& active) const {
  bool waits = false;
  for (int peer = 0; peer < transport_.size(); ++peer) waits |= active.operation->waits_for(peer);
  return waits && !active.operation->done();
}

// Whether others that wait for the operation of a channel, or for messages, wait for this rank itself. It is not late
// if it waits for another rank in something that comes before the operation, or in anything that may come before a
// message. All ranks begin their operations in the same order, but the streams start the all-reduces in any order. So a
// rank that waits always waits for one that is behind it, and the last one of them is late.
bool Progress::is_late(int channel) const {
  if (channel == kMailboxChannel)
    return std::ranges::none_of(active_, [this](const Active& active) { return waits(active); });
  const bool has_come = has_come_to(channel);
  return std::ranges::none_of(active_, [&](const Active& active) {
    if (active.channel == channel) return true;
    if (active.channel == kMailboxChannel) return !has_come && waits(active);
    if (is_beside(active.channel) || active.operation->done()) return false;
    return !has_come || (is_all_reduce_channel(channel) && is_all_reduce_channel(active.channel) &&
                         comes_before(active.channel, channel));
  });
}

// Whether this rank has begun the operation of a channel, or has enqueued it. A rank has come to an exchange only while
// it is in one.
bool Progress::has_come_to(int channel) const {
  if (channel == kSignalChannel) return state_ != State::kRunning;
  if (channel == kExchangeChannel) return false;
  if (is_all_reduce_channel(channel)) return comes_before(channel, all_reduce_channel(enqueued_));
  return channel == last_control_ || (last_control_ != kSignalChannel && comes_before(channel, last_control_));
}

void Progress::start(Operation& operation, int channel) {
  ARBALEST_CHECK(state_ == State::kRunning);
  active_.push_back({&operation, channel, awake_.seconds()});
  if (is_control_channel(channel)) last_control_ = channel;
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
  std::erase_if(active_, [&](const Active& active) {
    if (active.operation != &operation) return false;
    if (!is_beside(active.channel)) moved_at_ = awake_.seconds();
    return true;
  });
}

bool Progress::step(double now) {
  const bool was_stopped = now - now_ > kLongestPause;  // the others may have had no time to answer
  awake_.advance(now);
  if (calls_ || (called_at_ && was_stopped)) {
    calls_ = false;
    has_called_ = true;
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
  if (watchdog_.is_any_working()) worked_at_ = awake_.seconds();
  if (watchdog_.has_call() && !stop_at_) stop_at_ = awake_.seconds();
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
  blame(broken.peer, fmt::format("{} is dead or cut off: its connection with rank {} has failed ({}). {}",
                                 place_of(transport_, broken.peer), transport_.rank(), broken.reason, kLookAtPeer));
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
    return blame(peer, fmt::format("internal error: {} has ended, but rank {} still waits for it in an operation ({}); "
                                   "please report this",
                                   place_of(transport_, peer), transport_.rank(), active.operation->name()));
  }
  if (is_too_late(active.since) && watchdog_.is_late(peer, active.channel)) {
    return blame_hanging(peer, waited, fmt::format("in an operation ({})", active.operation->name()));
  }
  watchdog_.ask(peer, active.channel);
}

// Whether a rank that others have waited for since then hangs, if it is not in the same operation. A rank that works on
// files may keep any other one waiting, which is then late itself. A rank that is many operations behind, and ends one
// after the other, is slow and does not hang.
bool Progress::is_too_late(double since) const {
  const double now = awake_.seconds();
  const double moved = std::max({since, worked_at_, moved_at_});
  if (now - moved >= watchdog_.operation_timeout()) return true;
  return stop_at_ && now - std::max(moved, *stop_at_) >= kStopTimeouts * watchdog_.peer_timeout();
}

// Each rank waits for the shutdown handshake of all others.
void Progress::check_end() {
  const double waited = awake_.seconds() - closing_since_;
  if (waited < watchdog_.peer_timeout()) return;
  for (int peer = 0; peer < transport_.size(); ++peer) {
    if (peer == transport_.rank() || watchdog_.has_announced_shutdown(peer)) continue;
    if (is_too_late(closing_since_) && watchdog_.is_late(peer, kSignalChannel)) {
      return blame_hanging(peer, waited, "at the end of the run");
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
  fail_here(
      {ErrorKind::kPeer,
       fmt::format("a signal asks for a stop, but {} has not answered within {:g} s, so the run ends at once; the "
                   "model was not saved, and any earlier checkpoints are intact",
                   place_of(transport_, *missing), kAnswerSeconds)});
}

// The user has asked for an end, so a rank that got the signal ends at once.
void Progress::blame_hanging(int peer, double waited, const std::string& where) {
  ends_at_once_ = has_called_;
  blame(peer, fmt::format("{} hangs: it sends heartbeats, but others have waited for it for {:.0f} s {}{}. {}",
                          place_of(transport_, peer), waited, where,
                          stop_at_ ? ", and a signal asks for a stop; the model was not saved" : "", kLookAtPeer));
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
  watchdog_.announce_shutdown();
}

}  // namespace arbalest::engine::process
