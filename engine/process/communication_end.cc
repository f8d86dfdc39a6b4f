// Ends the communication thread: politely together with all other processes, or after a failure.
#include <unistd.h>

#include <chrono>
#include <cstdio>

#include "engine/process/communication_thread.h"
#include "engine/process/progress.h"

namespace arbalest::engine::process {

namespace {

constexpr double kOthersPrintSeconds = 1.0;  // after a failure, before all processes are ended
constexpr double kEndSeconds = 2.0;          // for the library to end all processes
constexpr const char* kNotEnded = "the launcher does not end the other processes; end them by hand";

}  // namespace

void CommunicationThread::close() {
  {
    const std::lock_guard lock(mutex_);
    wants_close_ = true;
    has_orders_ = true;
  }
  ordered_.notify_one();
  std::unique_lock lock(mutex_);
  changed_.wait(lock, [this] { return stage_ == Stage::kClosed || stage_ == Stage::kFailed; });
  if (stage_ == Stage::kFailed) throw Error(*failure_);
}

void CommunicationThread::abort(int exit_code) {
  last_exit_.arm(last_exit_seconds(), exit_code, kNotEnded);
  std::fflush(nullptr);  // may block
  std::unique_lock lock(mutex_);
  if (stage_ == Stage::kClosed) _exit(exit_code);
  last_exit_.arm(last_exit_seconds(), exit_code, kNotEnded);  // close_transport() may have armed it meanwhile
  abort_code_ = exit_code;
  has_orders_ = true;
  ordered_.notify_one();
  for (;;) changed_.wait(lock);  // the thread ends the process, or LastExit does
}

// abort() may come at any time, even while MPI is being finalized; then it is abort() that arms the last exit.
void CommunicationThread::close_transport() {
  const auto end_if_aborted = [this] {
    if (!abort_code_) return;
    transport_->abort(*abort_code_);
    _exit(*abort_code_);
  };
  {
    const std::lock_guard lock(mutex_);
    end_if_aborted();
    // Another rank may notice only now that a rank is silent, and must get the time to name it.
    last_exit_.arm(peer_timeout_ + last_exit_seconds(), kPeerExitCode,
                   "MPI does not end: another process or its host does not answer");
  }
  try {
    transport_->close();
  } catch (const Error& error) {
    return end_after_failure(error, false);
  }
  std::unique_lock lock(mutex_);
  if (abort_code_) _exit(*abort_code_);
  last_exit_.disarm();
  stage_ = Stage::kClosed;
  changed_.notify_all();
  ordered_.wait(lock, [this] { return stops_; });
}

double CommunicationThread::last_exit_seconds() const noexcept {
  return options_.owner_ends_seconds + kSpreadSeconds + kOthersPrintSeconds + kEndSeconds;
}

int CommunicationThread::exit_code_of(const Error& failure, bool ends_at_once) const {
  constexpr int kSignalBase = 128;
  if (ends_at_once) return kSignalBase + stopped_by_;
  return options_.exit_code ? options_.exit_code(failure.kind()) : kPeerExitCode;
}

// The owner may be busy, and never learn of the failure.
void CommunicationThread::arm_last_exit(const Error& failure, bool ends_at_once) {
  const std::lock_guard lock(mutex_);
  if (abort_code_) return;  // abort() has armed it
  last_exit_.arm(last_exit_seconds(), exit_code_of(failure, ends_at_once), failure.what());
}

// From here on nothing polls the transport, so the owners of buffers may free them. A rank with an error of its own
// gets the time to print it and to end all processes with its exit code; the others end them only if it has not. Every
// rank gets the time to print its message.
void CommunicationThread::end_after_failure(const Error& failure, bool is_error_of_other_rank) {
  using Clock = std::chrono::steady_clock;
  const auto after = [begin = Clock::now()](double seconds) {
    return begin + std::chrono::duration_cast<Clock::duration>(std::chrono::duration<double>(seconds));
  };
  active_.clear();
  std::unique_lock lock(mutex_);
  stage_ = Stage::kFailed;
  failure_.emplace(failure);
  changed_.notify_all();
  ordered_.wait_until(lock, after(options_.owner_ends_seconds), [this] { return stops_ || abort_code_; });
  if (stops_) return last_exit_.disarm();
  if (!abort_code_) std::fprintf(stderr, "arbalest: error: %s\n", failure.what());
  const double others = is_error_of_other_rank ? options_.owner_ends_seconds + kSpreadSeconds : 0.0;
  ordered_.wait_until(lock, after(others + kOthersPrintSeconds), [this] { return stops_; });
  const int exit_code = abort_code_.value_or(exit_code_of(failure, false));
  lock.unlock();
  last_exit_.arm(kEndSeconds, exit_code, kNotEnded);  // MPI_Abort of MPICH may hang
  transport_->abort(exit_code);
  _exit(exit_code);
}

// The user has asked for an end, so nobody waits for the owner, which may be blocked.
void CommunicationThread::end_at_once(const Error& failure) {
  const int exit_code = exit_code_of(failure, true);
  last_exit_.arm(kEndSeconds, exit_code, kNotEnded);
  std::fprintf(stderr, "arbalest: %s\n", failure.what());
  transport_->abort(exit_code);
  _exit(exit_code);
}

}  // namespace arbalest::engine::process
