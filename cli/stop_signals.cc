#include "cli/stop_signals.h"

#include <unistd.h>

#include <cerrno>
#include <csignal>
#include <cstdint>
#include <cstring>
#include <ctime>

#include "cli/exit_codes.h"
#include "cli/stop_requests.h"
#include "engine/base/error.h"

namespace arbalest::cli {

namespace {

// A signal handler can only reach statics.
StopRequests requests;
std::atomic<int> requested_saves{0};
static_assert(std::atomic<int>::is_always_lock_free);
std::atomic<const char*> second_signal_text{""};
static_assert(std::atomic<const char*>::is_always_lock_free);

std::int64_t nanoseconds_now() {
  timespec now{};
  clock_gettime(CLOCK_MONOTONIC, &now);  // async-signal-safe, and it does not fail for this clock
  return std::int64_t{now.tv_sec} * 1'000'000'000 + now.tv_nsec;
}

extern "C" void note_signal(int signal) {
  const int error = errno;
  const StopRequest request = requests.note(signal, nanoseconds_now());
  errno = error;
  if (request != StopRequest::kSecond || signal == SIGHUP) return;
  const char* text = second_signal_text.load();
  // The process ends anyway if its standard error is gone.
  static_cast<void>(write(STDERR_FILENO, text, std::strlen(text)) == 0);
  _exit(kSignalBase + signal);
}

extern "C" void note_save_request(int) { ++requested_saves; }

void handle(int signal, void (*handler)(int)) {
  struct sigaction action {};
  action.sa_handler = handler;
  action.sa_flags = SA_RESTART;
  if (sigaction(signal, &action, nullptr) != 0) {
    engine::fail(engine::ErrorKind::kInternal, "sigaction({}) failed: {}", signal, std::strerror(errno));
  }
}

bool is_ignored(int signal) {
  struct sigaction action {};
  return sigaction(signal, nullptr, &action) == 0 && action.sa_handler == SIG_IGN;
}

}  // namespace

const std::atomic<int>& catch_stop_signals(const char* second_signal) {
  second_signal_text = second_signal;
  handle(SIGINT, note_signal);
  handle(SIGTERM, note_signal);
  if (!is_ignored(SIGHUP)) handle(SIGHUP, note_signal);
  handle(SIGPIPE, SIG_IGN);
  handle(SIGXFSZ, SIG_IGN);
  return requests.signal();
}

const std::atomic<int>& catch_save_requests() {
  handle(SIGUSR1, note_save_request);
  return requested_saves;
}

}  // namespace arbalest::cli
