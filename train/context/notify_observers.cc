#include "train/context/notify_observers.h"

#include <exception>

namespace arbalest::jobs {

void notify_finish(std::span<RunObserver* const> observers, const RunSummary& summary) {
  std::exception_ptr failure;
  for (RunObserver* observer : observers) {
    try {
      observer->on_finish(summary);
    } catch (...) {
      if (!failure) failure = std::current_exception();
    }
  }
  if (failure) std::rethrow_exception(failure);
}

}  // namespace arbalest::jobs
