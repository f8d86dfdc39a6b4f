// Folds batch norm into convolutions, for predictions. With its running statistics, batch norm multiplies each channel
// by a number and adds another one:
//   scale (conv(x, w) + b - mean) / sqrt(variance + epsilon) + shift = conv(x, w f) + (b - mean) f + shift
//   f = scale / sqrt(variance + epsilon)
// The folded model needs one pass over memory less. Its outputs differ in the last bits, so evaluation does not use it.
#pragma once

#include <span>
#include <string>
#include <vector>

#include "dataflow/expected_tensors.h"
#include "dataflow/graph.h"

namespace arbalest::dataflow {

class BatchNormFolding {
 public:
  // Folds each batch norm that is the only reader of a convolution's output. `kept`: name of a layer that stays as it
  // is; "": none.
  explicit BatchNormFolding(const Graph& graph, const std::string& kept = "");

  // The convolutions keep their names, and have a bias.
  const Graph& graph() const noexcept { return folded_; }

  // Returns the parameters of graph(), from those of the given graph. Throws as check_tensors() does.
  std::vector<NamedTensor> fold(std::span<const NamedTensor> model) const;

 private:
  struct Pair {
    std::string convolution;
    std::string normalization;
    float epsilon = 0.0F;
  };

  std::vector<ExpectedTensor> expected_;  // parameters of the given graph
  std::vector<Pair> pairs_;
  Graph folded_;
};

}  // namespace arbalest::dataflow
