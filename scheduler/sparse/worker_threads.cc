#include "scheduler/sparse/worker_threads.h"

#include <exception>
#include <mutex>
#include <system_error>
#include <thread>
#include <utility>

#include "engine/base/error.h"
#include "engine/host/pinning.h"

namespace arbalest::scheduler {

void run_workers(const std::vector<std::vector<int>>& cores, const std::function<void(int)>& work,
                 const std::function<void()>& cancel) {
  std::mutex mutex;
  std::exception_ptr failure;
  const auto fail = [&](std::exception_ptr error) {
    const std::lock_guard lock(mutex);
    if (failure) return;
    failure = std::move(error);
    cancel();
  };
  {
    std::vector<std::jthread> threads;
    for (std::size_t i = 0; i < cores.size(); ++i) {
      try {
        threads.emplace_back([&, i] {
          try {
            engine::host::pin_this_thread(cores[i]);
            work(static_cast<int>(i));
          } catch (...) {
            fail(std::current_exception());
          }
        });
      } catch (const std::system_error& error) {
        fail(std::make_exception_ptr(engine::Error(
            engine::ErrorKind::kOutOfMemory,
            fmt::format("the system has no thread for learner {}: {}; use fewer learners", i, error.what()))));
        break;
      }
    }
  }
  if (failure) std::rethrow_exception(failure);
}

}  // namespace arbalest::scheduler
