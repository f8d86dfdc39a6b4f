// Fills in one layer of the model schema, and reads it into a LayerDescription.
#pragma once

#include <string>

#include "arbalest/v1/model.pb.h"
#include "dataflow/graph.h"
#include "dataflow/models/fields/field_issues.h"

namespace arbalest::dataflow {

// Sets the missing fields of `layer` whose defaults depend on other fields. The others must be set (fill_fields).
void fill_layer(v1::Layer& layer);

// `message` must have its defaults (fill_defaults of the model). Adds issues of the layer to `issues`, with paths that
// start with `path` and messages that name the layer. A layer with issues is not sound, and a layer without a kind has
// none.
LayerDescription read_layer(const v1::Layer& message, const std::string& path, FieldIssues& issues);

}  // namespace arbalest::dataflow
