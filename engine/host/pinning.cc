#include "engine/host/pinning.h"

#include <pthread.h>
#include <sched.h>

#include <cstring>

#include "engine/base/error.h"

namespace arbalest::engine::host {

void pin_this_thread(const std::vector<int>& cores) {
  if (cores.empty()) return;
  cpu_set_t set;
  CPU_ZERO(&set);
  for (const int core : cores) CPU_SET(core, &set);
  const int code = pthread_setaffinity_np(pthread_self(), sizeof(set), &set);
  if (code != 0) fail(ErrorKind::kDevice, "cannot bind a thread to its cores: {}", std::strerror(code));
}

}  // namespace arbalest::engine::host
