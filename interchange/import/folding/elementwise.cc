#include <algorithm>
#include <cmath>
#include <functional>
#include <map>
#include <string_view>
#include <utility>

#include "interchange/import/folding/extents.h"
#include "interchange/import/folding/folding.h"

namespace arbalest::jobs {

namespace {

constexpr std::int64_t kMost = 1 << 30;  // sums and products of such integers do not overflow

void check_small(const std::vector<std::int64_t>& integers) {
  if (std::ranges::any_of(integers, [](std::int64_t value) { return value > kMost || value < -kMost; })) {
    refuse("it computes with large integers, or with the number of examples");
  }
}

// A function of two numbers, and of two integers. Null: there is none.
struct Arithmetic {
  float (*numbers)(float, float) = nullptr;
  std::int64_t (*integers)(std::int64_t, std::int64_t) = nullptr;
};

struct Comparison {
  bool (*numbers)(float, float);
  bool (*integers)(std::int64_t, std::int64_t);
};

template <typename Operation>
constexpr Arithmetic arithmetic() {
  return {[](float a, float b) { return Operation{}(a, b); },
          [](std::int64_t a, std::int64_t b) { return Operation{}(a, b); }};
}

template <typename Operation>
constexpr Comparison comparison() {
  return {[](float a, float b) { return Operation{}(a, b); },
          [](std::int64_t a, std::int64_t b) { return Operation{}(a, b); }};
}

struct Smaller {
  template <typename T>
  T operator()(T a, T b) const {
    return std::min(a, b);
  }
};

struct Larger {
  template <typename T>
  T operator()(T a, T b) const {
    return std::max(a, b);
  }
};

Arithmetic find_arithmetic(const std::string& kind) {
  static const std::map<std::string_view, Arithmetic> kKinds = {
      {"Add", arithmetic<std::plus<>>()},
      {"Div", arithmetic<std::divides<>>()},  // of integers: rounded towards 0, as ONNX does
      {"Max", arithmetic<Larger>()},
      {"Min", arithmetic<Smaller>()},
      {"Mul", arithmetic<std::multiplies<>>()},
      {"Pow", {.numbers = [](float a, float b) { return std::pow(a, b); }}},
      {"Sub", arithmetic<std::minus<>>()},
  };
  return kKinds.at(kind);
}

Comparison find_comparison(const std::string& kind) {
  static const std::map<std::string_view, Comparison> kKinds = {
      {"Equal", comparison<std::equal_to<>>()},
      {"Greater", comparison<std::greater<>>()},
      {"GreaterOrEqual", comparison<std::greater_equal<>>()},
      {"Less", comparison<std::less<>>()},
      {"LessOrEqual", comparison<std::less_equal<>>()},
  };
  return kKinds.at(kind);
}

// A function of one number, or of one integer. Null: there is none.
struct Single {
  float (*numbers)(float) = nullptr;
  std::int64_t (*integers)(std::int64_t) = nullptr;
};

Single find_function(const std::string& kind) {
  static const std::map<std::string_view, Single> kKinds = {
      {"Abs", {[](float x) { return std::abs(x); }, [](std::int64_t x) { return std::abs(x); }}},
      {"Ceil", {.numbers = [](float x) { return std::ceil(x); }}},
      {"Exp", {.numbers = [](float x) { return std::exp(x); }}},
      {"Floor", {.numbers = [](float x) { return std::floor(x); }}},
      {"Neg", {[](float x) { return -x; }, [](std::int64_t x) { return -x; }}},
      {"Not", {.integers = [](std::int64_t x) -> std::int64_t { return x == 0 ? 1 : 0; }}},
      {"Reciprocal", {.numbers = [](float x) { return 1.0F / x; }}},
      {"Sign",
       {[](float x) { return x > 0.0F   ? 1.0F
                             : x < 0.0F ? -1.0F
                                        : x; },
        [](std::int64_t x) -> std::int64_t { return x > 0   ? 1
                                                    : x < 0 ? -1
                                                            : 0; }}},
      {"Sqrt", {.numbers = [](float x) { return std::sqrt(x); }}},
  };
  return kKinds.at(kind);
}

// Two constants of the same extents and type.
struct SameShapes {
  Constant a;
  Constant b;
};

SameShapes operands(const GraphImport& graph, const Constant& a, const Constant& b) {
  if (a.is_integer != b.is_integer) refuse("it mixes floating-point numbers and integers");
  const std::vector<std::int64_t> dims = broadcast_dims(a.dims, b.dims);
  check_room(graph, checked_elements(dims), a.is_integer);
  return {broadcast(graph, a, dims), broadcast(graph, b, dims)};
}

void check_two_inputs(const NodeReader& node) {
  if (node.node().input_size() != 2) refuse("it has {} inputs, not two", node.node().input_size());
}

// Whether a list that may hold the free number of examples, which is at least 1, equals another, element by element.
bool is_equal(std::int64_t a, std::int64_t b) {
  const std::int64_t other = a == kFreeBatch ? b : a;
  if ((a == kFreeBatch) != (b == kFreeBatch) && other > 0) refuse("it compares the number of examples with {}", other);
  return a == b;
}

}  // namespace

Constant fold_arithmetic(GraphImport& graph, NodeReader& node) {
  node.ignore("broadcast");  // of operator sets before 7; what fits is broadcast today
  node.ignore("consumed_inputs");
  const std::string& kind = node.kind();
  const Arithmetic function = find_arithmetic(kind);
  if (kind != "Max" && kind != "Min") check_two_inputs(node);
  Constant result = graph.constant(node, 0, "its input");
  for (int k = 1; k < node.node().input_size(); ++k) {
    auto [a, b] = operands(graph, result, graph.constant(node, k, "its input"));
    if (a.is_integer && function.integers == nullptr) refuse("it computes with integers");
    check_small(a.integers);
    check_small(b.integers);
    if (kind == "Div" && std::ranges::count(b.integers, 0) > 0) refuse("it divides by 0");
    std::ranges::transform(a.numbers, b.numbers, a.numbers.begin(), function.numbers);
    std::ranges::transform(a.integers, b.integers, a.integers.begin(), function.integers);
    result = std::move(a);
  }
  result.name.clear();
  return result;
}

Constant fold_comparison(GraphImport& graph, NodeReader& node) {
  check_two_inputs(node);
  const Comparison function = find_comparison(node.kind());
  const auto [a, b] = operands(graph, graph.constant(node, 0, "its input"), graph.constant(node, 1, "its input"));
  check_room(graph, a.size(), true);
  Constant result{.dims = a.dims, .is_integer = true};
  const bool is_equality = node.kind() == "Equal";
  if (!is_equality) {
    check_small(a.integers);
    check_small(b.integers);
  }
  for (std::size_t k = 0; k < a.numbers.size(); ++k) {
    result.integers.push_back(function.numbers(a.numbers[k], b.numbers[k]) ? 1 : 0);
  }
  for (std::size_t k = 0; k < a.integers.size(); ++k) {
    const bool is_true =
        is_equality ? is_equal(a.integers[k], b.integers[k]) : function.integers(a.integers[k], b.integers[k]);
    result.integers.push_back(is_true ? 1 : 0);
  }
  return result;
}

Constant fold_function(GraphImport& graph, NodeReader& node) {
  node.ignore("consumed_inputs");
  Constant result = graph.constant(node, 0, "its input");
  const Single function = find_function(node.kind());
  if ((result.is_integer && function.integers == nullptr) || (!result.is_integer && function.numbers == nullptr)) {
    refuse("it computes with {}", result.is_integer ? "integers" : "numbers");
  }
  check_small(result.integers);
  std::ranges::transform(result.numbers, result.numbers.begin(), function.numbers);
  std::ranges::transform(result.integers, result.integers.begin(), function.integers);
  result.name.clear();
  return result;
}

Constant fold_where(GraphImport& graph, NodeReader& node) {
  const Constant& condition = graph.constant(node, 0, "its condition");
  if (!condition.is_integer) refuse("its condition is no truth value");
  auto [a, b] = operands(graph, graph.constant(node, 1, "its input"), graph.constant(node, 2, "its input"));
  const std::vector<std::int64_t> dims = broadcast_dims(condition.dims, a.dims);
  check_room(graph, checked_elements(dims), true);
  const Constant choice = broadcast(graph, condition, dims);
  Constant result = broadcast(graph, a, dims);
  const Constant other = broadcast(graph, b, dims);
  for (std::size_t k = 0; k < choice.integers.size(); ++k) {
    if (choice.integers[k] != 0) continue;
    if (result.is_integer) {
      result.integers[k] = other.integers[k];
    } else {
      result.numbers[k] = other.numbers[k];
    }
  }
  return result;
}

}  // namespace arbalest::jobs
