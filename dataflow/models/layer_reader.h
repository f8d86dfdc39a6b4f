// One layer of the model schema -> a LayerDescription.
#pragma once

#include <string>

#include "arbalest/v1/model.pb.h"
#include "dataflow/graph.h"
#include "dataflow/models/field_issues.h"

namespace arbalest::dataflow {

// Of convolution and pooling.
inline constexpr Range<int> kKernelLength{1, 1024};

// `message` has its defaults (fill_defaults). What is wrong with it goes to `issues`, with paths that start with `path`
// and messages that name the layer; the result is then not sound, or has no layer where the kind is missing.
LayerDescription read_layer(const v1::Layer& message, const std::string& path, FieldIssues& issues);

}  // namespace arbalest::dataflow
