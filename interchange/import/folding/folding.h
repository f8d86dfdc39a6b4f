// The kinds of nodes that are computed when their inputs are constants. Each function returns the node's first output,
// and throws NodeRefused if it cannot be computed or would be too large.
#pragma once

#include "interchange/import/graph/graph_import.h"

namespace arbalest::jobs {

// New constants, and their types (creation.cc).
Constant fold_constant(GraphImport& graph, NodeReader& node);
Constant fold_constant_of_shape(GraphImport& graph, NodeReader& node);
Constant fold_range(GraphImport& graph, NodeReader& node);
Constant fold_shape(GraphImport& graph, NodeReader& node);
Constant fold_cast(GraphImport& graph, NodeReader& node);
Constant fold_cast_like(GraphImport& graph, NodeReader& node);
Constant fold_identity(GraphImport& graph, NodeReader& node);

// The same elements in other extents or another order (layout.cc).
Constant fold_expand(GraphImport& graph, NodeReader& node);
Constant fold_reshape(GraphImport& graph, NodeReader& node);
Constant fold_squeeze(GraphImport& graph, NodeReader& node);
Constant fold_transpose(GraphImport& graph, NodeReader& node);
Constant fold_unsqueeze(GraphImport& graph, NodeReader& node);

// Parts of constants, and constants of parts (parts.cc).
Constant fold_concat(GraphImport& graph, NodeReader& node);
Constant fold_gather(GraphImport& graph, NodeReader& node);
Constant fold_slice(GraphImport& graph, NodeReader& node);

// Functions of each element (elementwise.cc).
Constant fold_arithmetic(GraphImport& graph, NodeReader& node);  // Add, Div, Max, Min, Mul, Pow, Sub
Constant fold_comparison(GraphImport& graph, NodeReader& node);  // Equal, Greater, GreaterOrEqual, Less, LessOrEqual
Constant fold_function(GraphImport& graph,
                       NodeReader& node);  // Abs, Ceil, Exp, Floor, Neg, Not, Reciprocal, Sign, Sqrt
Constant fold_where(GraphImport& graph, NodeReader& node);

}  // namespace arbalest::jobs
