// Turns an ONNX model into layers of a job and their weights.
#pragma once

#include <cstddef>
#include <map>
#include <string>
#include <vector>

#include "arbalest/v1/model.pb.h"
#include "dataflow/input/dataset.h"
#include "dataflow/parameter_layout.h"
#include "onnx/model.pb.h"

namespace arbalest::jobs {

struct ImportedModel {
  std::vector<v1::Layer> layers;               // with the loss
  std::vector<dataflow::NamedTensor> weights;  // "conv1.weight"
  dataflow::InputDescription input;
  std::map<std::string, std::string> metadata;  // of a file that this program has written
  std::string name;                             // of the graph, if this program has written the file; else ""
  std::vector<std::string> notes;               // facts that the user should know
};

// Elements of all constants that a file may compute, such as by ConstantOfShape: 2 GiB of numbers.
inline constexpr std::size_t kMostComputed = std::size_t{1} << 29;

// `model`: as read_onnx() returns it. Its input must be images [n, c, h, w], rows of numbers [n, features] or ids
// [n, columns], its output one number per class [n, classes], of at least two. A softmax at the end is left out,
// because the loss reads logits. In files of our own it is left out only if --softmax has added it. Nodes that the
// output does not depend on are left out.
//
// Throws ErrorKind::kInvalidJob with all nodes that cannot be imported, each with its name and the reason; or if the
// input or output is another. Throws kCheckpoint if a tensor is damaged.
ImportedModel import_onnx(const onnx::Model& model, std::size_t most_computed = kMostComputed);

}  // namespace arbalest::jobs
