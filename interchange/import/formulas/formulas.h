// Formulas that files spell out in several nodes where ONNX has one, as Keras' exporters do.
#pragma once

#include <cstdint>

#include "interchange/import/graph/graph_import.h"
#include "onnx/model.pb.h"

namespace arbalest::jobs {

// The operator that join_formulas() writes for batch norm: x, scale, bias, mean and variance. Unlike ONNX's operator it
// takes channels on any axis: the shapes of the numbers tell which. Scale and bias may be "".
inline constexpr const char* kSpelledNorm = "SpelledBatchNorm";

// Puts one node in the place of the last node of each formula that is known. The others stay: what else reads them
// finds them, and those that nothing needs are not imported. The nodes must be sorted.
//
// Known are batch norm with its own scale, bias, mean and variance; windows over images to which two dimensions of
// extent 1 were added; the largest pixel of an image; ReLU and ReLU6 made of Max and Min.
void join_formulas(onnx::Graph& graph, std::int64_t operator_set);

// Imports kSpelledNorm.
void import_spelled_norm(GraphImport& graph, NodeReader& node);

}  // namespace arbalest::jobs
