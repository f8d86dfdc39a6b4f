// Reads which saved weights a job starts from.
#pragma once

#include <string>

#include "arbalest/v1/initialize.pb.h"
#include "dataflow/graph.h"
#include "dataflow/models/fields/field_issues.h"
#include "options/parameters/initialize_options.h"

namespace arbalest::jobs {

inline constexpr const char* kFromPath = "initialize.from";

// Makes the path absolute. `file`: path of the job file.
void fill_defaults(v1::Initialize& initialize, const std::string& file);

// Reads `initialize`, which must have its defaults. Adds issues with paths in the job. `graph`: the job's model; null
// if it is unknown. The file itself is not looked at.
InitializeOptions read_initialize(const v1::Initialize& initialize, const dataflow::Graph* graph,
                                  dataflow::FieldIssues& issues);

// Warns of parameters that stay at their random initial values, because they are both fresh and frozen.
std::string initialize_warning(const InitializeOptions& options, const dataflow::Graph& graph);

}  // namespace arbalest::jobs
