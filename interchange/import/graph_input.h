// The input of an ONNX graph.
#pragma once

#include <cstdint>
#include <optional>
#include <string>

#include "engine/base/shape.h"
#include "onnx/model.pb.h"

namespace arbalest::jobs {

struct GraphInput {
  std::string name;
  engine::Shape shape = {};  // of one example here: [c, h, w], or [columns] of ids
  bool is_ids = false;
  bool is_vector = false;                        // [n, features] in the file, here [features, 1, 1]
  bool is_line = false;                          // [n, c, w] in the file, here [c, 1, w]
  bool has_last_channels = false;                // [n, h, w, c] in the file
  std::optional<std::int64_t> fixed_batch = {};  // the number of examples, if the file fixes it

  // Returns the shape of a mini-batch of one example: [1, c, h, w].
  engine::Shape one_example() const {
    engine::Shape result{1};
    for (const std::int64_t extent : shape) result.append(extent);
    return result;
  }
};

// Throws ErrorKind::kInvalidJob if the graph has another number of inputs than one, or one of another form.
GraphInput find_graph_input(const onnx::Graph& graph);

}  // namespace arbalest::jobs
