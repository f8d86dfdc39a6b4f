// One layer of the model schema -> a Layer.
#pragma once

#include <memory>
#include <string>

#include "arbalest/v1/model.pb.h"
#include "dataflow/layer.h"
#include "dataflow/models/field_issues.h"

namespace arbalest::dataflow {

// `message` has its defaults (fill_defaults). What is wrong with it goes to `issues`, with paths that start with `path`
// and messages that name the layer; the result is then null or not to be used.
std::shared_ptr<const Layer> read_layer(const v1::Layer& message, const std::string& path, FieldIssues& issues);

}  // namespace arbalest::dataflow
