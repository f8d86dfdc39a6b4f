#include "jobs/options/readers/processes_reader.h"

namespace arbalest::jobs {

using engine::process::AllReduceMethod;

namespace {

// Heartbeats come twice a second, and a few may be late.
constexpr double kLeastTimeout = 2.0;
constexpr double kMostTimeout = 86'400.0;

}  // namespace

void fill_timeout(v1::Processes& processes) {
  if (!processes.has_peer_timeout_seconds()) processes.set_peer_timeout_seconds(ProcessOptions{}.peer_timeout_seconds);
}

void fill_processes(v1::Processes& processes) {
  fill_timeout(processes);
  if (!processes.has_all_reduce()) processes.set_all_reduce(v1::Processes::CANONICAL);
}

ProcessOptions read_processes(const v1::Processes& processes, dataflow::FieldIssues& issues) {
  issues.add(
      "processes.peer_timeout_seconds",
      dataflow::out_of_range("peer_timeout_seconds", processes.peer_timeout_seconds(), {kLeastTimeout, kMostTimeout}));
  const bool is_library = processes.all_reduce() == v1::Processes::LIBRARY;
  return {.peer_timeout_seconds = processes.peer_timeout_seconds(),
          .all_reduce = is_library ? AllReduceMethod::kLibrary : AllReduceMethod::kCanonical};
}

}  // namespace arbalest::jobs
