// Turns SIGINT, SIGTERM and SIGHUP into a flag. Commands check the flag where they can stop cleanly; training checks it
// between rounds.
#pragma once

#include <atomic>

namespace arbalest::cli {

// Installs the handlers. The first signal sets the flag, until then 0, to its number. The same signal within 0.2 s is
// the same request (stop_requests.h). Any other SIGINT or SIGTERM writes `second_signal`, a string literal that says
// what is lost, to stderr and ends the process at once with 128 + signal. A later SIGHUP is ignored, because a closing
// terminal sends several. Under nohup SIGHUP stays ignored. SIGPIPE and SIGXFSZ are ignored: the write fails with EPIPE
// or EFBIG instead, so a closed pipe on stdout does not stop a run before it saves its model.
const std::atomic<int>& catch_stop_signals(const char* second_signal);

// Installs a handler for SIGUSR1. Returns the number of these signals so far.
const std::atomic<int>& catch_save_requests();

}  // namespace arbalest::cli
