#include "engine/cpu/device/threads.h"

#include <omp.h>
#include <pthread.h>
#include <sched.h>

#include <cstring>

#include "engine/error.h"

namespace arbalest::engine::cpu {

void set_thread_count(int threads) { omp_set_num_threads(threads); }

ThreadCountScope::ThreadCountScope(int threads) : before_(omp_get_max_threads()) { omp_set_num_threads(threads); }

ThreadCountScope::~ThreadCountScope() { omp_set_num_threads(before_); }

void pin_this_thread(const std::vector<int>& cores) {
  if (cores.empty()) return;
  cpu_set_t set;
  CPU_ZERO(&set);
  for (const int core : cores) CPU_SET(core, &set);
  const int code = pthread_setaffinity_np(pthread_self(), sizeof(set), &set);
  if (code != 0) fail(ErrorKind::kDevice, "cannot bind a thread to its cores: {}", std::strerror(code));
}

}  // namespace arbalest::engine::cpu
