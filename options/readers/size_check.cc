#include "options/readers/size_check.h"

#include <algorithm>

#include "messages/text.h"

namespace arbalest::jobs {

using engine::Shape;

namespace {

constexpr double kMaxElements = 1 << 30;

// A floating-point number, because a product of extents may exceed every integer.
double elements(const Shape& shape) {
  double product = 1.0;
  for (const std::int64_t extent : shape) product *= static_cast<double>(extent);
  return product;
}

}  // namespace

std::vector<SizeIssue> check_sizes(const dataflow::Graph& graph, std::int64_t batch_size) {
  std::vector<SizeIssue> issues;
  const auto is_too_large = [](const Shape& shape) { return elements(shape) > kMaxElements; };
  const auto check = [&](const std::string& layer, const std::string& what, const Shape& shape) {
    if (!is_too_large(shape)) return;
    issues.push_back({layer, fmt::format("layer '{}': its {} would be {} numbers, more than 2^30; make the layer, its "
                                         "input or batch_size smaller",
                                         layer, what, to_string(shape))});
  };
  const std::vector<Shape> shapes = graph.shapes(batch_size);
  for (const dataflow::Graph::Node& node : graph.nodes()) {
    const std::vector<Shape> inputs = dataflow::Graph::input_shapes(node, shapes);
    // Outputs behind one that is too large are too large for the same reason.
    if (std::ranges::none_of(inputs, is_too_large)) {
      check(node.name, "output", shapes[static_cast<std::size_t>(node.output)]);
    }
    for (const dataflow::ParameterSpec& parameter : dataflow::Graph::parameters(node, shapes)) {
      check(node.name, parameter.name, parameter.shape);
    }
  }
  return issues;
}

std::string check_round(int learners, const sma::Options& scheme, std::int64_t batches) {
  const std::int64_t needed = std::int64_t{learners} * scheme.period;
  if (needed <= batches) return "";
  const std::string mini_batches = counted(needed, "mini-batch");
  std::string problem;
  std::string shorter;
  const sma::SynchronizationMode mode = scheme.mode(learners);
  if (mode == sma::SynchronizationMode::kServer) {
    problem = fmt::format("one push of each of {} (push_every: {}) takes {}", counted(learners, "learner"),
                          scheme.period, mini_batches);
    shorter = fmt::format("a push_every of at most {}, ", grouped(batches / learners));
  } else if (mode == sma::SynchronizationMode::kShared || mode == sma::SynchronizationMode::kGradient) {
    problem = fmt::format("one step of each of {} takes {}", counted(learners, "learner"), mini_batches);
  } else {
    problem =
        fmt::format("a round of {} with period {} needs {}", counted(learners, "learner"), scheme.period, mini_batches);
    shorter = fmt::format("a period of at most {}, ", grouped(batches / learners));
  }
  return fmt::format("{}, but an epoch has {}; use {}fewer learners or smaller mini-batches", problem, grouped(batches),
                     scheme.period > 1 && batches >= learners ? shorter : "");
}

}  // namespace arbalest::jobs
