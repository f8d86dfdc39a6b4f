// One layer of the model schema -> a Layer.
#pragma once

#include <memory>
#include <string>

#include "arbalest/v1/model.pb.h"
#include "dataflow/layer.h"
#include "dataflow/models/field_issues.h"

namespace arbalest::dataflow {

// Of convolution and pooling.
inline constexpr Range<int> kKernelLength{1, 1024};

// Thrown for the output shape of a layer that is wrong in itself.
struct UnknownOutput {};

// `message` has its defaults (fill_defaults). What is wrong with it goes to `issues`, with paths that start with `path`
// and messages that name the layer; the result is then good for Graph::build to check names and inputs, and throws
// UnknownOutput where its shape is asked for.
std::shared_ptr<const Layer> read_layer(const v1::Layer& message, const std::string& path, FieldIssues& issues);

}  // namespace arbalest::dataflow
