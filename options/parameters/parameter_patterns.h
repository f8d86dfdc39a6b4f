// Reads lists of patterns, and checks them against a model's parameters.
#pragma once

#include <span>
#include <string>
#include <string_view>
#include <vector>

#include <google/protobuf/repeated_ptr_field.h>

#include "dataflow/graph.h"
#include "dataflow/models/fields/field_issues.h"
#include "options/parameters/name_pattern.h"

namespace arbalest::jobs {

// `path`: path of the list in the job, "training.freeze". Reports empty patterns and, unless `graph` is null, patterns
// that match no parameter.
std::vector<NamePattern> read_patterns(const std::string& path,
                                       const google::protobuf::RepeatedPtrField<std::string>& texts,
                                       const dataflow::Graph* graph, dataflow::FieldIssues& issues);

bool matches_any(std::span<const NamePattern> patterns, std::string_view name);

}  // namespace arbalest::jobs
