// Checks whether a run can follow its schedule of learners, and whether it reaches its switches.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "dataflow/models/fields/field_issues.h"
#include "options/job_options.h"

namespace arbalest::jobs {

// Adds issues for steps of a schedule that lie within an iteration (scheduler::Scheduler). Iterations continue from one
// epoch to the next, so the size of an epoch matters only if switches change the length of an iteration. Without
// `batches` (of an epoch) such jobs are not checked.
void check_steps(const JobOptions& options, std::optional<std::int64_t> batches, dataflow::FieldIssues& issues);

// Warnings if no iteration begins between a switch and the next one, or the end of the run, for epochs of `batches`
// mini-batches. If the number of learners is searched while training, only the run can tell (RunSummary).
std::vector<std::string> unreached_switches(const JobOptions& options, std::int64_t batches);

// All warnings that follow from the number of an epoch's mini-batches: unreached steps and switches, a last iteration
// that makes the run much longer, and spikes of the loss that cannot be told.
std::vector<std::string> size_warnings(const JobOptions& options, std::int64_t batches);

}  // namespace arbalest::jobs
