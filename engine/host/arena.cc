// Compiled without ThreadSanitizer (engine/CMakeLists.txt): half of oneTBB's synchronization is inlined here from its
// headers, the other half is in libtbb, which is not instrumented. The sanitizer would report false races.
#include "engine/host/arena.h"

#include <algorithm>
#include <cstddef>
#include <stdexcept>

#include <tbb/global_control.h>
#include <tbb/info.h>
#include <tbb/task_arena.h>

#include "engine/base/error.h"

namespace arbalest::engine::host {
namespace {

// oneTBB counts the caller as one of its threads, but here the caller never works. The smallest limit in the process
// applies, so a small arena must not ask for less than a large one.
std::size_t allowed_threads(int threads) {
  return static_cast<std::size_t>(std::max(threads, tbb::info::default_concurrency())) + 1;
}

}  // namespace

struct Arena::Impl {
  explicit Impl(int threads)
      : allowed(tbb::global_control::max_allowed_parallelism, allowed_threads(threads)),
        arena(threads, /*reserved_for_masters=*/0) {}

  tbb::global_control allowed;
  tbb::task_arena arena;
};

Arena::Arena(int threads) : impl_(std::make_unique<Impl>(threads)) {}

Arena::~Arena() = default;

void Arena::enqueue(void (*work)(void* context) noexcept, void* context) {
  try {
    impl_->arena.enqueue([work, context] { work(context); });
  } catch (const std::runtime_error& error) {
    fail(ErrorKind::kDevice, "cannot start a thread that prepares input: {}; look at 'ulimit -u' and at pids.max",
         error.what());
  }
}

}  // namespace arbalest::engine::host
