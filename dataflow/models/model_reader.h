// Reads the model schema into layers for Graph::build.
#pragma once

#include <vector>

#include "arbalest/v1/model.pb.h"
#include "dataflow/graph.h"
#include "dataflow/models/fields/field_issues.h"

namespace arbalest::dataflow {

// Sets every field of `model` that is missing and has a default. A second call changes nothing.
void fill_defaults(v1::Model& model);

// The layers of `model`, which must have its defaults (fill_defaults), for data of the form `input`. If `input` has no
// classes, the data is unknown, and a model of the zoo has no layers. Adds an issue for every value out of its range,
// with its path in `model`; a layer with such a value is not sound. Whether the layers fit together is checked by
// Graph::build. The i-th layer returned is model.layers(i), unless the model comes from the zoo; model.accuracy adds a
// last one.
std::vector<LayerDescription> read_model(const v1::Model& model, const InputDescription& input, FieldIssues& issues);

}  // namespace arbalest::dataflow
