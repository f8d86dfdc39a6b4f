#include "interchange/import/formulas/spelled_norm.h"

#include <string>
#include <utility>
#include <vector>

#include "interchange/import/formulas/formulas.h"

namespace arbalest::jobs {

namespace {

constexpr int kMostDepth = 6;  // of products and sums of constants

// Names of constants, in the shape in which the formula reads them. "": there is none.
struct Parts {
  std::string mean;
  std::string variance;
  std::string scale;
  std::string bias;
  float epsilon = 0.0F;
};

// A node with a computed operand and a constant one.
struct Step {
  std::string computed;
  std::string constant;
};

// `commutes`: the constant may come first.
std::optional<Step> step_of(const FormulaGraph& graph, const onnx::Node& node, bool commutes) {
  if (node.input_size() != 2 || node.attribute_size() > 0) return std::nullopt;  // "axis" before operator set 7
  const std::string& a = node.input(0);
  const std::string& b = node.input(1);
  if (!graph.is_constant(a) && graph.is_constant(b)) return Step{a, b};
  if (commutes && graph.is_constant(a) && !graph.is_constant(b)) return Step{b, a};
  return std::nullopt;
}

bool set_once(std::string& part, const std::string& value) {
  if (!part.empty()) return false;
  part = value;
  return true;
}

// variance + epsilon
bool read_variance(const FormulaGraph& graph, const std::string& value, Parts& parts) {
  const onnx::Node* sum = graph.writer(graph.unchanged(value), "Add");
  if (sum == nullptr || sum->input_size() != 2) return false;
  for (const int k : {1, 0}) {
    const std::optional<float> epsilon = graph.number(sum->input(k));
    const std::string& variance = sum->input(1 - k);
    if (!epsilon || !graph.is_constant(variance)) continue;
    parts.epsilon = *epsilon;
    return set_once(parts.variance, variance);
  }
  return false;
}

// Reads scale / sqrt(variance + epsilon), in any order of its factors. `is_divisor`: the value divides.
bool read_factors(const FormulaGraph& graph, const std::string& value, bool is_divisor, int depth, Parts& parts) {
  const std::string name = graph.unchanged(value);
  const onnx::Node* node = graph.writer(name);
  const std::string kind = node == nullptr ? "" : node->op_type();
  if (depth > kMostDepth) return false;
  if (kind == "Mul" || kind == "Div") {
    return node->input_size() == 2 && read_factors(graph, node->input(0), is_divisor, depth + 1, parts) &&
           read_factors(graph, node->input(1), is_divisor != (kind == "Div"), depth + 1, parts);
  }
  if (kind == "Reciprocal") return read_factors(graph, node->input(0), !is_divisor, depth + 1, parts);
  if (kind == "Sqrt") return is_divisor && read_variance(graph, node->input(0), parts);
  if (kind == "Pow") {
    const std::optional<float> power = node->input_size() == 2 ? graph.number(node->input(1)) : std::nullopt;
    return power == (is_divisor ? 0.5F : -0.5F) && read_variance(graph, node->input(0), parts);
  }
  if (graph.number(value) == 1.0F) return true;
  return !is_divisor && graph.is_constant(value) && set_once(parts.scale, value);
}

// Reads bias - mean * `factor`, where `factor` is the name of the value by which x is multiplied.
bool read_shift(const FormulaGraph& graph, const std::string& value, const std::string& factor, bool is_negative,
                int depth, Parts& parts) {
  const std::string name = graph.unchanged(value);
  const onnx::Node* node = graph.writer(name);
  const std::string kind = node == nullptr ? "" : node->op_type();
  if (depth > kMostDepth) return false;
  if ((kind == "Add" || kind == "Sub") && node->input_size() == 2) {
    return read_shift(graph, node->input(0), factor, is_negative, depth + 1, parts) &&
           read_shift(graph, node->input(1), factor, is_negative != (kind == "Sub"), depth + 1, parts);
  }
  if (kind == "Neg") return read_shift(graph, node->input(0), factor, !is_negative, depth + 1, parts);
  if (kind == "Mul" && node->input_size() == 2) {
    for (const int k : {0, 1}) {
      if (graph.unchanged(node->input(k)) != factor) continue;
      std::string mean = node->input(1 - k);
      if (const onnx::Node* negative = graph.writer(graph.unchanged(mean), "Neg")) {
        is_negative = !is_negative;
        mean = negative->input(0);
      }
      return is_negative && graph.is_constant(mean) && set_once(parts.mean, mean);
    }
    return false;
  }
  return !is_negative && graph.is_constant(value) && set_once(parts.bias, value);
}

// A value without the factors by which its last nodes multiply or divide it.
struct Scaled {
  std::string x;
  std::vector<std::pair<std::string, bool>> factors = {};  // constants, the last one first, and whether they divide
};

// Takes one factor more away. Returns false if there is none.
bool take_factor(const FormulaGraph& graph, Scaled& scaled) {
  const onnx::Node* node = graph.writer(graph.unchanged(scaled.x));
  const bool divides = node != nullptr && node->op_type() == "Div";
  if (node == nullptr || (!divides && node->op_type() != "Mul")) return false;
  std::optional<Step> step = step_of(graph, *node, !divides);
  if (!step) return false;
  scaled.x = step->computed;
  scaled.factors.emplace_back(step->constant, divides);
  return true;
}

// The parts of (`scaled` + `shift`), or of (`scaled` - `shift`) if `subtracts`, where `scaled.x` may be x - mean. Sets
// `x`.
std::optional<Parts> parts_of(const FormulaGraph& graph, const Scaled& scaled, const std::string& shift, bool subtracts,
                              std::string& x) {
  Parts parts;
  for (const auto& [factor, divides] : scaled.factors) {
    if (!read_factors(graph, factor, divides, 0, parts)) return std::nullopt;
  }
  if (parts.variance.empty()) return std::nullopt;
  const onnx::Node* centered = graph.writer(graph.unchanged(scaled.x), "Sub");
  const std::optional<Step> center = centered == nullptr ? std::nullopt : step_of(graph, *centered, false);
  if (center && !subtracts) {
    x = center->computed;
    parts.mean = center->constant;
    parts.bias = shift;
    return parts;
  }
  if (scaled.factors.size() != 1 || scaled.factors[0].second) return std::nullopt;
  const std::string factor = graph.unchanged(scaled.factors[0].first);
  if (!read_shift(graph, shift, factor, subtracts, 0, parts) || parts.mean.empty()) return std::nullopt;
  x = scaled.x;
  return parts;
}

onnx::Node make_norm(const std::string& x, const Parts& parts, const std::string& output) {
  onnx::Node node =
      make_node(kSpelledNorm, {x, parts.scale, parts.bias, parts.mean, parts.variance}, output, "batch_norm");
  onnx::Attribute& epsilon = *node.add_attribute();
  epsilon.set_name("epsilon");
  epsilon.set_type(onnx::Attribute::FLOAT);
  epsilon.set_f(parts.epsilon);
  return node;
}

}  // namespace

std::optional<onnx::Node> find_spelled_norm(const FormulaGraph& graph, const onnx::Node& last) {
  const bool subtracts = last.op_type() == "Sub";
  if (!subtracts && last.op_type() != "Add") return std::nullopt;
  const std::optional<Step> shift = step_of(graph, last, !subtracts);
  if (!shift) return std::nullopt;
  Scaled scaled{.x = shift->computed};
  constexpr std::size_t kMostFactors = 3;
  while (scaled.factors.size() < kMostFactors && take_factor(graph, scaled)) {
    std::string x;
    const std::optional<Parts> parts = parts_of(graph, scaled, shift->constant, subtracts, x);
    if (parts) return make_norm(x, *parts, last.output(0));
  }
  return std::nullopt;
}

}  // namespace arbalest::jobs
