// Cuts the backward pass into parts. The gradient of one part can be reduced over learners while the next part runs.
// (PyTorch's DistributedDataParallel calls the elements of a part a bucket.)
#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <span>
#include <vector>

namespace arbalest::dataflow {

struct GradientPart {
  // Nodes of the graph, run backward from last_node - 1 to first_node.
  std::size_t first_node = 0;
  std::size_t last_node = 0;
  // Elements [begin, end) of the flat gradient, which are final when the part has run.
  std::int64_t begin = 0;
  std::int64_t end = 0;

  bool operator==(const GradientPart&) const = default;
};

// Parts in the order in which they run. They cover each node and each of the `trainable` elements exactly once.
// first_element: by node, the first element of its trainable parameters; none if it has none. Ascending.
//   bytes: a part is closed once its elements, as float32, take this many bytes. The first part is closed at an eighth
//          of `bytes`, so that reducing starts early. 0: there is one part.
// The parts depend on nothing else, so all processes of a run compute the same parts.
std::vector<GradientPart> gradient_parts(std::span<const std::optional<std::int64_t>> first_element,
                                         std::int64_t trainable, std::int64_t bytes);

}  // namespace arbalest::dataflow
