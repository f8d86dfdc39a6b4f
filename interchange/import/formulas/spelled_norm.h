// Batch norm that a file spells out: (x - mean) / sqrt(variance + epsilon) * scale + bias.
#pragma once

#include <optional>

#include "interchange/import/formulas/formula_graph.h"

namespace arbalest::jobs {

// A kSpelledNorm in the place of `last`, the formula's last node. None if `last` ends no such formula, or if the file
// holds a product of its parts only, as most exporters leave.
std::optional<onnx::Node> find_spelled_norm(const FormulaGraph& graph, const onnx::Node& last);

}  // namespace arbalest::jobs
