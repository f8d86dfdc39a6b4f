// Reads the model that a run has saved, and finds the layer that gives its prediction.
#pragma once

#include <string>
#include <vector>

#include "dataflow/graph.h"
#include "dataflow/parameter_layout.h"

namespace arbalest::jobs {

// As read_safetensors. Also throws kCheckpoint, naming the file and the tensor, if a value is not finite.
std::vector<dataflow::NamedTensor> read_finite_model(const std::string& path, const std::string& sha256);

// Number of the tensor that the main loss compares with the labels: logits, or predictions.
int output_tensor(const dataflow::Graph& graph);

// Name of the layer whose output is compared with the labels at inference: the logits, or the number of a model that
// predicts one.
std::string output_layer(const dataflow::Graph& graph);

}  // namespace arbalest::jobs
