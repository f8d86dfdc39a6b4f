// Reads which accuracies a classifier reports.
#pragma once

#include <memory>
#include <string>
#include <vector>

#include "arbalest/v1/model.pb.h"
#include "dataflow/graph.h"
#include "dataflow/models/fields/field_issues.h"

namespace arbalest::dataflow {

// Issues have paths such as "top_k[1]", relative to the message.
std::shared_ptr<const Layer> read_accuracy(const v1::Accuracy& message, FieldIssues& issues);

// Appends an accuracy layer beside the main loss of `layers`, the last one. Issues have paths below "accuracy".
void append_accuracy(const v1::Accuracy& message, std::vector<LayerDescription>& layers, FieldIssues& issues);

}  // namespace arbalest::dataflow
