// Checks that the job's learners can train in teams of the size that it asks for.
#pragma once

#include <string>
#include <vector>

#include "dataflow/models/fields/field_issues.h"
#include "options/job_options.h"

namespace arbalest::jobs {

// Clears JobOptions::tunes_team if devices, schemes or split layers rule teams out. Adds an issue if JobOptions::team
// does not divide a fixed number of learners, or if devices, schemes or split layers rule teams out. Devices, learners
// and schemes must be set. `is_split`: whether devices share a layer.
void check_team(JobOptions& options, bool is_split, dataflow::FieldIssues& issues);

// Settings, as of --set, that give each device `learners` learners, in teams of the largest size up to JobOptions::team
// that divides their number.
std::vector<std::string> learner_settings(const JobOptions& job, int learners);

}  // namespace arbalest::jobs
