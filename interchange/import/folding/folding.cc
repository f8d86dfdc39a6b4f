#include "interchange/import/folding/folding.h"

#include <algorithm>
#include <map>
#include <memory>
#include <string>
#include <string_view>
#include <utility>

#include "interchange/import/operators.h"

namespace arbalest::jobs {

namespace {

using Folding = Constant (*)(GraphImport&, NodeReader&);

Folding find_folding(const std::string& kind) {
  static const std::map<std::string_view, Folding> kFoldings = {
      {"Abs", fold_function},
      {"Add", fold_arithmetic},
      {"Cast", fold_cast},
      {"CastLike", fold_cast_like},
      {"Ceil", fold_function},
      {"Concat", fold_concat},
      {"Constant", fold_constant},
      {"ConstantOfShape", fold_constant_of_shape},
      {"Div", fold_arithmetic},
      {"Equal", fold_comparison},
      {"Exp", fold_function},
      {"Expand", fold_expand},
      {"Floor", fold_function},
      {"Gather", fold_gather},
      {"Greater", fold_comparison},
      {"GreaterOrEqual", fold_comparison},
      {"Identity", fold_identity},
      {"Less", fold_comparison},
      {"LessOrEqual", fold_comparison},
      {"Max", fold_arithmetic},
      {"Min", fold_arithmetic},
      {"Mul", fold_arithmetic},
      {"Neg", fold_function},
      {"Not", fold_function},
      {"Pow", fold_arithmetic},
      {"Range", fold_range},
      {"Reciprocal", fold_function},
      {"Reshape", fold_reshape},
      {"Shape", fold_shape},
      {"Sign", fold_function},
      {"Slice", fold_slice},
      {"Sqrt", fold_function},
      {"Squeeze", fold_squeeze},
      {"Sub", fold_arithmetic},
      {"Transpose", fold_transpose},
      {"Unsqueeze", fold_unsqueeze},
      {"Where", fold_where},
  };
  const auto found = kFoldings.find(kind);
  return found == kFoldings.end() ? nullptr : found->second;
}

// Whether a shape that a node reads contains the free number of examples: then there is no constant to compute.
bool has_free_shape(const GraphImport& graph, const NodeReader& node) {
  if (node.kind() != "Expand") return false;
  const Constant& shape = graph.constant(node, 1, "its shape");
  return std::ranges::count(shape.integers, kFreeBatch) > 0;
}

// Only the type of the second input of CastLike counts.
int constants_needed(const NodeReader& node) { return node.kind() == "CastLike" ? 1 : node.node().input_size(); }

}  // namespace

bool fold(GraphImport& graph, NodeReader& node) {
  const Folding folding = find_folding(node.kind());
  if (folding == nullptr) return false;
  for (int k = 0; k < constants_needed(node); ++k) {
    const Value* value = graph.input(node, k);
    if (value != nullptr && !std::holds_alternative<std::shared_ptr<const Constant>>(*value)) return false;
  }
  if (has_free_shape(graph, node)) return false;
  Constant constant = folding(graph, node);
  graph.count_made(constant.size());
  graph.put(node, std::make_shared<const Constant>(std::move(constant)));
  return true;
}

}  // namespace arbalest::jobs
