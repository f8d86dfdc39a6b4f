// The processor time that a run of a bench got and lost, measured from outside while it runs.
#pragma once

#include <sys/types.h>

#include <chrono>
#include <memory>
#include <optional>

#include <nlohmann/json.hpp>

#include "engine/host/processor_time.h"

namespace arbalest::jobs {

// engine/host/processor_time.h says what counts as lost.
struct BenchProcessor {
  double seconds = 0.0;  // that were measured
  double used = 0.0;     // processor seconds of the whole process
  double lost = 0.0;     // processor seconds that it wanted and other programs had

  double lost_share() const { return used + lost > 0.0 ? lost / (used + lost) : 0.0; }
  // Other programs took so much that times do not compare jobs.
  bool is_disturbed() const { return lost_share() > 0.05; }
};

// Looks at a process a few times a second.
class ProcessorWatch {
 public:
  // Call it often while the process runs.
  void look(pid_t process);
  // Once the process has ended and used so many processor seconds. What it lost in its last instants is estimated. None
  // if too little was seen, or if the system tells nothing.
  std::optional<BenchProcessor> whole(double used_seconds) const;

 private:
  std::unique_ptr<engine::host::ProcessorClock> clock_;
  std::chrono::steady_clock::time_point next_;
  std::optional<BenchProcessor> seen_;
};

// Null if it is not known.
nlohmann::ordered_json to_json(const std::optional<BenchProcessor>& processor);
std::optional<BenchProcessor> processor_from(const nlohmann::ordered_json& json);

}  // namespace arbalest::jobs
