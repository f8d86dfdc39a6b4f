// Says what a process is doing. Heartbeats carry it, so that messages about a dead process can say where it was.
#pragma once

#include <cstdint>

namespace arbalest::engine::process {

enum class Phase : std::uint8_t { kStart, kLoading, kTraining, kEvaluation, kSaving, kEnd };

constexpr const char* phase_name(Phase phase) {
  switch (phase) {
    case Phase::kStart: return "start";
    case Phase::kLoading: return "loading";
    case Phase::kTraining: return "training";
    case Phase::kEvaluation: return "evaluation";
    case Phase::kSaving: return "saving";
    case Phase::kEnd: return "end";
  }
  return "unknown";  // a heartbeat of another version
}

struct Position {
  std::uint64_t round = 0;
  Phase phase = Phase::kStart;

  bool operator==(const Position&) const = default;
};

}  // namespace arbalest::engine::process
