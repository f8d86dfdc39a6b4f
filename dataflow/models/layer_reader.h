// Reads one layer of the model schema into a LayerDescription.
#pragma once

#include <string>

#include "arbalest/v1/model.pb.h"
#include "dataflow/graph.h"
#include "dataflow/models/field_issues.h"

namespace arbalest::dataflow {

// Side of a window of convolution or pooling, in pixels.
inline constexpr Range<int> kKernelLength{1, 1024};

// `message` must have its defaults (fill_defaults). Adds issues of the layer to `issues`, with paths that start with
// `path` and messages that name the layer. A layer with issues is not sound, and a layer without a kind has none.
LayerDescription read_layer(const v1::Layer& message, const std::string& path, FieldIssues& issues);

}  // namespace arbalest::dataflow
