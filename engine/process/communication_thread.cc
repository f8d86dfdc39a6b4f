#include "engine/process/communication_thread.h"

#include <pthread.h>
#include <sys/prctl.h>

#include <algorithm>
#include <chrono>
#include <ctime>
#include <span>
#include <system_error>
#include <utility>

#include "engine/process/awake_clock.h"
#include "engine/process/idling.h"
#include "engine/process/progress.h"

namespace arbalest::engine::process {

namespace {

constexpr unsigned long kTimerSlackNanoseconds = 10'000;

Position unpack(std::uint64_t position) {
  return {.round = position >> 8, .phase = static_cast<Phase>(position & 0xFF)};
}

}  // namespace

CommunicationThread::CommunicationThread(Open open, CommunicationOptions options)
    : options_(std::move(options)), peer_timeout_(options_.watchdog.peer_timeout_seconds) {
  try {
    thread_ = std::thread([this, open = std::move(open)] { run(open); });
  } catch (const std::system_error& error) {
    fail(ErrorKind::kOutOfMemory, "cannot start the communication thread: {}; look at 'ulimit -u' and at pids.max",
         error.code().message());
  }
  std::unique_lock lock(mutex_);
  changed_.wait(lock, [this] { return stage_ != Stage::kOpening; });
  if (stage_ != Stage::kNotOpened) return;
  lock.unlock();
  thread_.join();
  throw Error(*failure_);
}

CommunicationThread::~CommunicationThread() {
  {
    const std::lock_guard lock(mutex_);
    stops_ = true;
    has_orders_ = true;
  }
  ordered_.notify_one();
  if (thread_.joinable()) thread_.join();
}

void CommunicationThread::start(Submission& submission) {
  {
    const std::lock_guard lock(mutex_);
    submission.is_done = false;
    queue_.push(submission);
    has_orders_ = true;
  }
  ordered_.notify_one();
}

bool CommunicationThread::is_done(const Submission& submission) {
  const std::lock_guard lock(mutex_);
  return submission.is_done;
}

void CommunicationThread::wait(const Submission& submission) {
  std::unique_lock lock(mutex_);
  changed_.wait(lock, [&] { return submission.is_done || stage_ == Stage::kFailed || stage_ == Stage::kClosed; });
  if (submission.is_done) return;
  if (stage_ == Stage::kClosed) fail(ErrorKind::kInternal, "an operation was started after the end of MPI");
  throw Error(*failure_);
}

void CommunicationThread::announce_failure(const Error& error) {
  {
    const std::lock_guard lock(mutex_);
    if (!failure_here_) failure_here_.emplace(error);
    has_orders_ = true;
  }
  ordered_.notify_one();
}

void CommunicationThread::check(double seconds) {
  std::unique_lock lock(mutex_);
  const auto has_failed = [this] { return stage_ == Stage::kFailed; };
  if (seconds > 0.0) changed_.wait_for(lock, std::chrono::duration<double>(seconds), has_failed);
  if (has_failed()) throw Error(*failure_);
}

void CommunicationThread::set_position(const Position& position) noexcept {
  position_ = position.round << 8 | static_cast<std::uint64_t>(position.phase);
}

void CommunicationThread::set_peer_timeout(double seconds) noexcept { peer_timeout_ = seconds; }

double CommunicationThread::cpu_seconds() const {
  clockid_t clock{};
  timespec time{};
  const bool is_known = pthread_getcpuclockid(const_cast<std::thread&>(thread_).native_handle(), &clock) == 0 &&
                        clock_gettime(clock, &time) == 0;
  ARBALEST_CHECK(is_known);
  return static_cast<double>(time.tv_sec) + 1e-9 * static_cast<double>(time.tv_nsec);
}

void CommunicationThread::run(const Open& open) {
  prctl(PR_SET_TIMERSLACK, kTimerSlackNanoseconds);  // else sleeps of 50 us would take twice as long
  last_exit_.arm(options_.start_timeout_seconds, kPeerExitCode,
                 fmt::format("MPI has not started within {:g} s: another process or its host does not answer",
                             options_.start_timeout_seconds));
  std::optional<Error> error;
  try {
    transport_ = open();
  } catch (const Error& not_opened) {
    error = not_opened;
  } catch (const std::exception& not_opened) {
    error = Error(ErrorKind::kPeer, not_opened.what());
  }
  last_exit_.disarm();
  if (error) return publish(Stage::kNotOpened, error);
  Progress progress(*transport_, options_.watchdog, seconds_now());
  publish(Stage::kOpen, std::nullopt);
  communicate(progress);
}

void CommunicationThread::communicate(Progress& progress) {
  Idling idling;
  bool is_failing = false;
  for (;;) {
    look_for_stop(progress);
    const bool has_orders = take_orders(progress);
    const bool moved = progress.step(seconds_now());
    const bool ended = settle(progress);
    if (progress.failure() && !std::exchange(is_failing, true)) {
      arm_last_exit(*progress.failure(), progress.must_end_at_once());
    }
    switch (progress.state()) {
      case Progress::State::kClosed: return close_transport();
      case Progress::State::kFailed:
        if (progress.must_end_at_once()) end_at_once(*progress.failure());
        return end_after_failure(*progress.failure(), progress.is_error_of_other_rank());
      default: break;
    }
    const double now = seconds_now();
    if (has_orders || moved || ended) {
      idling.reset(now);
      continue;
    }
    std::unique_lock lock(mutex_);
    // A failure that was announced before the end is an order, and the others must hear of it.
    if (stops_ && !has_orders_ && progress.state() != Progress::State::kSpreading) return;
    const double seconds = idling.next_sleep(now, !active_.empty());
    if (seconds > 0.0) ordered_.wait_for(lock, std::chrono::duration<double>(seconds), [this] { return has_orders_; });
  }
}

void CommunicationThread::look_for_stop(Progress& progress) {
  const std::atomic<int>* const signal = stop_signal_;
  if (signal == nullptr || stopped_by_ != 0 || *signal == 0) return;
  stopped_by_ = *signal;
  progress.request_stop();
}

// Returns whether there were any orders.
bool CommunicationThread::take_orders(Progress& progress) {
  progress.watchdog().set_position(unpack(position_));
  progress.watchdog().set_peer_timeout(peer_timeout_);
  progress.watchdog().set_working(file_works_ > 0);
  progress.set_enqueued(enqueued_);
  {
    const std::lock_guard lock(mutex_);
    if (!std::exchange(has_orders_, false)) return false;
    if (failure_here_) progress.fail_here(*failure_here_);
    if (abort_code_) {
      progress.fail_here(
          Error(ErrorKind::kPeer,
                fmt::format("it has ended the run with exit code {}; its own message says why", *abort_code_)));
    }
    if (progress.state() != Progress::State::kRunning) return true;
    queue_.take_ready(active_);
    if (wants_close_ && active_.empty() && queue_.is_empty()) progress.close();
  }
  // This happens without the mutex, because the start of an operation may copy a vector.
  for (; started_ < active_.size() && progress.state() == Progress::State::kRunning; ++started_) {
    progress.start(*active_[started_]->operation, active_[started_]->channel);
  }
  return true;
}

// Reports operations that are done. Returns whether there were any. After a failure none is reported, because its owner
// would free it while the transport is still polled.
bool CommunicationThread::settle(Progress& progress) {
  if (progress.failure()) return false;
  const auto is_done = [](const Submission* submission) { return submission->operation->done(); };
  if (std::ranges::none_of(std::span(active_).first(started_), is_done)) return false;
  {
    const std::lock_guard lock(mutex_);
    for (std::size_t i = started_; i-- > 0;) {
      Submission* const submission = active_[i];
      if (!is_done(submission)) continue;
      progress.forget(*submission->operation);
      submission->is_done = true;
      active_.erase(active_.begin() + static_cast<std::ptrdiff_t>(i));
      --started_;
    }
    has_orders_ |= wants_close_;  // close() waits for operations
  }
  changed_.notify_all();
  return true;
}

void CommunicationThread::publish(Stage stage, const std::optional<Error>& failure) {
  {
    const std::lock_guard lock(mutex_);
    stage_ = stage;
    if (failure) failure_.emplace(*failure);
  }
  changed_.notify_all();
}

}  // namespace arbalest::engine::process
