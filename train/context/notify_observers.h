// Tells all observers of a run what happens.
#pragma once

#include <span>

#include "train/context/run_observer.h"

namespace arbalest::jobs {

// Calls a function of all observers.
template <typename... Parameters, typename... Arguments>
void notify_observers(std::span<RunObserver* const> observers, void (RunObserver::*event)(Parameters...),
                      const Arguments&... arguments) {
  for (RunObserver* observer : observers) (observer->*event)(arguments...);
}

// Gives all observers the summary, even if one fails; then throws the first error.
void notify_finish(std::span<RunObserver* const> observers, const RunSummary& summary);

}  // namespace arbalest::jobs
