#include "engine/cpu/runtime/threads.h"

#include <omp.h>

namespace arbalest::engine::cpu {

void set_thread_count(int threads) { omp_set_num_threads(threads); }

ThreadCountScope::ThreadCountScope(int threads) : before_(omp_get_max_threads()) { omp_set_num_threads(threads); }

ThreadCountScope::~ThreadCountScope() { omp_set_num_threads(before_); }

}  // namespace arbalest::engine::cpu
