// What PyTorch's newer exporter records about the network before it optimizes the file.
#pragma once

#include <set>
#include <string>

#include "onnx/model.pb.h"

namespace arbalest::jobs {

// Names of tensors of the network ("layer1.0.bn1.weight"), whether the file still has them or not. Empty in files of
// other exporters.
struct ExportSignature {
  std::set<std::string> parameters;
  std::set<std::string> buffers;  // such as running statistics
};

ExportSignature read_signature(const onnx::Graph& graph);

// The value of the entry `key`; "" if there is none.
std::string value_of(const google::protobuf::RepeatedPtrField<onnx::Entry>& entries, const std::string& key);

}  // namespace arbalest::jobs
