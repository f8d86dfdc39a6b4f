// Inverted dropout. In training each element is zeroed with probability `ratio`, else scaled by 1 / (1 - ratio); at
// inference it is unchanged. The mask is a function of (seed, task, layer, element) and is never stored.
#pragma once

#include <cstdint>
#include <optional>

#include "engine/base/layout.h"

namespace arbalest::engine {

// Says that a tensor [P b, n / P] is one of P equal blocks of columns of a split model: row r belongs to mini-batch
// number task - rank + r / b, in which the whole tensor is [b, n].
struct ColumnBlock {
  int rank = 0;
  int ranks = 1;
};

struct DropoutSpec {
  Layout input;             // any shape, float32 or bfloat16, like the output; elements are numbered in canonical order
  float ratio = 0.5F;       // in [0, 1)
  std::uint32_t layer = 0;  // number of the layer in its graph
  // Set: the mask is that of the block's elements in the whole tensors. Two axes; GPUs: float32.
  std::optional<ColumnBlock> block = {};
};

}  // namespace arbalest::engine
