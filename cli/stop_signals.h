// Catches SIGINT, SIGTERM and SIGHUP as a flag that a run checks between rounds.
#pragma once

#include <atomic>

namespace arbalest::cli {

// From now on the first of these signals sets the flag to its number (0 before), and a second one ends the process at
// once with 128 + signal. A second SIGHUP does not, because a closing terminal sends several. SIGHUP stays ignored if
// it is (nohup). SIGPIPE and SIGXFSZ become errors of the write that causes them, because the reader of our output may
// be gone before the model has been saved.
const std::atomic<int>& catch_stop_signals();

}  // namespace arbalest::cli
