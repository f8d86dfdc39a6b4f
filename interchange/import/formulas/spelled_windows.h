// Windows over images that a file spells out: two dimensions of extent 1 are added before, and removed after.
#pragma once

#include <string>
#include <vector>

#include "interchange/import/formulas/formula_graph.h"

namespace arbalest::jobs {

struct Replacement {
  std::vector<onnx::Node> nodes = {};
  std::vector<onnx::Tensor> tensors = {};
};

// Nodes of ONNX's kinds that compute what `last`, the formula's last node, does. Empty if `last` ends no such formula.
// `prefix`: begins no name of a value of the graph.
Replacement find_spelled_window(const FormulaGraph& graph, const onnx::Node& last, const std::string& prefix);

}  // namespace arbalest::jobs
