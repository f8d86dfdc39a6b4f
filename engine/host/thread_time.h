// CPU time of a thread, and of the process.
#pragma once

#include <ctime>

namespace arbalest::engine::host {

// CPU seconds of the calling thread since its start, without time asleep.
inline double thread_cpu_seconds() noexcept {
  timespec time{};
  clock_gettime(CLOCK_THREAD_CPUTIME_ID, &time);  // cannot fail: the clock is the calling thread's own
  return static_cast<double>(time.tv_sec) + 1e-9 * static_cast<double>(time.tv_nsec);
}

// CPU seconds of all threads of the process so far.
inline double process_cpu_seconds() noexcept {
  timespec time{};
  clock_gettime(CLOCK_PROCESS_CPUTIME_ID, &time);
  return static_cast<double>(time.tv_sec) + 1e-9 * static_cast<double>(time.tv_nsec);
}

}  // namespace arbalest::engine::host
