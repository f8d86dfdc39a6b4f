// Writes a trained model in ONNX's file format: operator set 13, format version 7, as it runs at inference.
#pragma once

#include <map>
#include <string>
#include <vector>

#include "dataflow/graph.h"
#include "dataflow/parameter_layout.h"
#include "onnx/model.pb.h"

namespace arbalest::jobs {

struct OnnxOptions {
  std::string name;                             // of the graph
  std::map<std::string, std::string> metadata;  // facts for readers of the file
  bool softmax = false;                         // adds an output with the probabilities of the classes
};

// Input: "image", float32 [batch, c, h, w], or "ids", int64 [batch, columns]. Output: "logits" [batch, classes], or
// "prediction" [batch, 1] for a model that predicts numbers; with `softmax` also "probabilities". The batch is free.
// Weights have the names of `tensors`; layers that only training uses are left out. Equal arguments give an equal
// message.
//
// Throws ErrorKind::kCheckpoint if `tensors` are not exactly the parameters of `graph`; kUsage if `softmax` is asked of
// a model that predicts numbers, or if the file would have 2 GiB or more, which protobuf does not allow.
onnx::Model to_onnx(const dataflow::Graph& graph, std::vector<dataflow::NamedTensor> tensors,
                    const OnnxOptions& options);

}  // namespace arbalest::jobs
