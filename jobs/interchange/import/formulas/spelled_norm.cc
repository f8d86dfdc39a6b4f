#include "jobs/interchange/import/formulas/spelled_norm.h"

#include <cmath>
#include <string>
#include <utility>
#include <vector>

#include "jobs/interchange/import/formulas/formulas.h"

namespace arbalest::jobs {

namespace {

constexpr int kMostDepth = 6;  // of products and sums of constants

// Names of values: tensors of the file in the shape in which the formula reads them. "": there is none.
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
  if (node.input_size() != 2) return std::nullopt;
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
    if (!epsilon || graph.tensor(variance) == nullptr) continue;
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
  return !is_divisor && graph.tensor(value) != nullptr && set_once(parts.scale, value);
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
      return is_negative && graph.tensor(mean) != nullptr && set_once(parts.mean, mean);
    }
    return false;
  }
  return !is_negative && graph.tensor(value) != nullptr && set_once(parts.bias, value);
}

// The names of constants by which a value is multiplied or divided, the last one first, and what they scale.
struct Scaled {
  std::string x;
  std::vector<std::pair<std::string, bool>> factors = {};  // and whether it divides
};

Scaled scaled(const FormulaGraph& graph, const std::string& value) {
  Scaled result{.x = value};
  while (result.factors.size() < 3) {
    const onnx::Node* node = graph.writer(graph.unchanged(result.x));
    const bool divides = node != nullptr && node->op_type() == "Div";
    if (node == nullptr || (!divides && node->op_type() != "Mul")) break;
    std::optional<Step> step = step_of(graph, *node, !divides);
    if (!step) break;
    result.x = step->computed;
    result.factors.emplace_back(step->constant, divides);
  }
  return result;
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
  const Scaled product = scaled(graph, shift->computed);
  if (product.factors.empty()) return std::nullopt;
  Parts parts;
  for (const auto& [factor, divides] : product.factors) {
    if (!read_factors(graph, factor, divides, 0, parts)) return std::nullopt;
  }
  if (parts.variance.empty()) return std::nullopt;
  std::string x = product.x;
  const onnx::Node* centered = graph.writer(graph.unchanged(x), "Sub");
  const std::optional<Step> center = centered == nullptr ? std::nullopt : step_of(graph, *centered, false);
  if (center && graph.tensor(center->constant) != nullptr && !subtracts && graph.tensor(shift->constant) != nullptr) {
    x = center->computed;
    parts.mean = center->constant;
    parts.bias = shift->constant;
  } else {
    const bool is_one_factor = product.factors.size() == 1 && !product.factors[0].second;
    if (!is_one_factor) return std::nullopt;
    const std::string factor = graph.unchanged(product.factors[0].first);
    if (!read_shift(graph, shift->constant, factor, subtracts, 0, parts) || parts.mean.empty()) return std::nullopt;
  }
  return make_norm(x, parts, last.output(0));
}

}  // namespace arbalest::jobs
