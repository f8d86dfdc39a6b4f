#include "options/readers/processes_reader.h"

#include "dataflow/models/fields/field_ranges.h"

namespace arbalest::jobs {

using engine::process::AllReduceMethod;

ProcessOptions read_processes(const v1::Processes& processes, dataflow::FieldIssues& issues) {
  dataflow::check_fields(processes, "processes", issues);
  const bool is_library = processes.all_reduce() == v1::Processes::LIBRARY;
  return {.peer_timeout_seconds = processes.peer_timeout_seconds(),
          .all_reduce = is_library ? AllReduceMethod::kLibrary : AllReduceMethod::kCanonical};
}

}  // namespace arbalest::jobs
