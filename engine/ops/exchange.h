// Exchanges of a tensor between the P devices of a split model. Each device has a mini-batch of b examples. A tensor
// is either "own", [b, n]: the device's examples with all columns, or "columns", [P b, n / P]: a part of the columns
// for the examples of all devices, ordered by rank.
//
// In training, the gradient takes the way back: the backward pass of kGather is that of kScatterSums forward, and
// kToColumns and kToExamples undo each other.
#pragma once

#include <memory>

#include "engine/base/layout.h"
#include "engine/ops/exchange_group.h"

namespace arbalest::engine {

enum class ExchangeKind {
  kGather,       // [b, n] -> [P b, n]: the examples of all devices
  kScatterSums,  // [P b, n] -> [b, n]: the sum over devices, in order of ranks, for the own examples
  kToColumns,    // [b, n] -> [P b, n / P]
  kToExamples,   // [P b, n / P] -> [b, n]
};

// A device's place among the devices of a split model.
struct ExchangeMember {
  std::shared_ptr<ExchangeGroup> group;
  int rank = 0;

  int ranks() const { return group->ranks(); }
};

struct ExchangeSpec {
  Layout input;  // two axes, float32, in canonical order, like the output
  ExchangeKind kind = ExchangeKind::kGather;
  ExchangeMember place;
  bool bias = false;  // kScatterSums: adds a parameter [n] to the sums
};

}  // namespace arbalest::engine
