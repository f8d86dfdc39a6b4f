// The model schema -> layers, for Graph::build.
#pragma once

#include <vector>

#include "arbalest/v1/model.pb.h"
#include "dataflow/graph.h"
#include "dataflow/models/field_issues.h"

namespace arbalest::dataflow {

// The layers of `model`, which has its defaults (fill_defaults), over data of the form `input`; without classes,
// nothing is known of the data, and a model of the zoo has no layers. Adds to `issues` every value that is out of its
// range, with its path in `model`; a layer that has one is not sound. Whether the layers fit together is for
// Graph::build to say: the i-th layer here is model.layers(i), unless the model is one of the zoo.
std::vector<LayerDescription> read_model(const v1::Model& model, const InputDescription& input, FieldIssues& issues);

}  // namespace arbalest::dataflow
