// A run's state as text: arbalest.v1.RunState (proto/arbalest/v1/run_state.proto). Floating-point numbers keep all
// bits.
#pragma once

#include <string>
#include <string_view>

namespace arbalest::jobs {

struct Checkpoint;
struct SavedRun;

// The scalars of the run; vectors, job and model are not part of it.
std::string run_state_text(const SavedRun& saved);

// Returns a run without vectors, but with as many learners as the state has. Throws as read_message does.
SavedRun read_run_state(const Checkpoint& checkpoint, std::string_view name);
// Does the same with text that this program has made.
SavedRun parse_run_state(const std::string& text);

}  // namespace arbalest::jobs
