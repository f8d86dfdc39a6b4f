#include "engine/process/progress.h"

#include <algorithm>
#include <exception>
#include <new>

namespace arbalest::engine::process {

namespace {

// Runs `body` and returns the error that it throws.
template <typename Body>
std::optional<Error> error_of(const Body& body) {
  try {
    body();
  } catch (const Error& error) {
    return error;
  } catch (const std::bad_alloc&) {
    return Error(ErrorKind::kOutOfMemory, "out of memory for the messages between processes");
  } catch (const std::exception& error) {
    return Error(ErrorKind::kInternal, error.what());
  }
  return std::nullopt;
}

}  // namespace

Progress::Progress(Transport& transport, WatchdogOptions options, double now)
    : transport_(transport), watchdog_(transport, std::move(options), now), now_(now) {}

void Progress::start(Operation& operation, int channel) {
  ARBALEST_CHECK(state_ == State::kRunning);
  active_.push_back(&operation);
  if (const std::optional<Error> error = error_of([&] { operation.start(transport_, channel); })) fail_here(*error);
}

void Progress::forget(const Operation& operation) { std::erase(active_, &operation); }

bool Progress::step(double now) {
  now_ = now;
  if (state_ == State::kFailed || state_ == State::kClosed) return false;
  bool moved = false;
  const std::optional<Error> error = error_of([&] {
    watchdog_.tick(now);
    moved = transport_.poll();
  });
  if (error) fail_here(*error);
  if (state_ == State::kRunning || state_ == State::kClosing) check_for_failure();
  if (state_ == State::kRunning) check_for_absent_peer();
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

// The programs of the ranks have lost step: one has ended while another still waits for it. If it is silent as well,
// the watchdog comes first.
void Progress::check_for_absent_peer() {
  if (active_.empty()) return;
  const int peer = watchdog_.gone_since(2.0 * watchdog_.peer_timeout());
  if (peer < 0) return;
  fail_here(
      Error(ErrorKind::kPeer,
            fmt::format("internal error: rank {} on host {} has ended, but rank {} still waits for it in an operation "
                        "({}); please report this",
                        peer, transport_.host(peer), transport_.rank(), active_.front()->name())));
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
  watchdog_.say_farewell();
}

}  // namespace arbalest::engine::process
