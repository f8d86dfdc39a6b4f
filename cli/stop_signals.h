// SIGINT, SIGTERM and SIGHUP as a flag that a run looks at between rounds.
#pragma once

#include <atomic>

namespace arbalest::cli {

// From now on the first of these signals sets the flag, and a second one ends the process at once with 128 + signal. A
// second SIGHUP does not: a terminal that is closed sends several. SIGHUP stays ignored where it is (nohup).
// SIGPIPE and SIGXFSZ become errors of the write that meets them: the reader of our output may be gone before the
// model has been saved. The flag is 0 until a signal comes, then its number.
const std::atomic<int>& catch_stop_signals();

}  // namespace arbalest::cli
