// gpu_prediction: prints predictions for LeNet and ResNet-32 on an H100 as tables in Markdown. It needs no GPU, because
// it counts nodes on the stand-in, and bytes and operations in the prepared plans.
#include <cmath>
#include <cstdio>
#include <string>
#include <utility>
#include <vector>

#include <fmt/format.h>

#include "tests/cuda_stand_in/stand_in.h"
#include "tests/prediction/prediction.h"

namespace {

using namespace arbalest::tests::prediction;
using arbalest::engine::Precision;

constexpr double kMicro = 1e6;

struct Model {
  const char* name;
  StepQuestion question;
};

// Rounds to thousands and formats: "2,586,000" for 2.586e6.
std::string in_thousands(double value) {
  const auto thousands = static_cast<std::int64_t>(std::llround(1e-3 * value));
  return thousands < 1000 ? fmt::format("{},000", thousands)
                          : fmt::format("{},{:03},000", thousands / 1000, thousands % 1000);
}

std::string range(const std::string& from, const std::string& to) { return from == to ? from : from + " to " + to; }

std::string micro_range(double from, double to) {
  return range(fmt::format("{:.0f}", kMicro * from), fmt::format("{:.0f}", kMicro * to));
}

void print_counts(const Model& model, const StepCosts& costs, std::int64_t nodes) {
  fmt::print("| {} | {} | {} | {} | {:.2f} | {:.1f} |\n", model.name, to_string(model.question.precision), nodes,
             costs.parameters, 1e-9 * costs.operations, 1e-6 * costs.bytes);
}

void print_prediction(const Model& model, const StepCosts& costs, std::int64_t nodes, int learners) {
  const Prediction found = predict(Gpu{}, costs, nodes, model.question.precision, learners);
  const double images = static_cast<double>(model.question.examples) * learners;
  fmt::print("| {} | {} | {} | {} | {:.1f} | {:.1f} | {} | {} | {} |\n", model.name,
             to_string(model.question.precision), learners,
             micro_range(found.least_node_seconds, found.most_node_seconds), kMicro * found.byte_seconds,
             kMicro * found.operation_seconds, micro_range(found.least_seconds, found.most_seconds),
             range(in_thousands(images / found.most_seconds), in_thousands(images / found.least_seconds)),
             to_string(found.limit));
}

void print_tables() {
  std::vector<std::pair<Model, std::pair<StepCosts, std::int64_t>>> rows;
  for (const Precision precision : {Precision::kFloat32, Precision::kTensorFloat32, Precision::kBFloat16}) {
    for (const Model& model :
         {Model{"LeNet, b = 32", {"lenet {}", arbalest::dataflow::image_input({1, 28, 28}, 10), 32, precision}},
          Model{"ResNet-32, b = 64",
                {"resnet_cifar { depth: 32 }", arbalest::dataflow::image_input({3, 32, 32}, 10), 64, precision}}}) {
      const std::int64_t nodes = count_nodes(model.question.model, precision);
      rows.push_back({model, {count_work(model.question), nodes}});
    }
  }
  fmt::print(
      "| model | precision | nodes | parameters | products and sums, 10⁹ | bytes, 10⁶ |\n|---|---|---|---|---|---|\n");
  for (const auto& [model, costs] : rows) print_counts(model, costs.first, costs.second);
  fmt::print(
      "\n| model | precision | learners | nodes, µs | bytes, µs | products, µs | all learners' step, µs | images/s | "
      "limit |\n|---|---|---|---|---|---|---|---|---|\n");
  for (const auto& [model, costs] : rows) {
    for (const int learners : {1, 8, 32}) print_prediction(model, costs.first, costs.second, learners);
  }
}

}  // namespace

int main() {
  try {
    arbalest::tests::cuda_stand_in::reset();
    print_tables();
    return 0;
  } catch (const std::exception& error) {
    std::fprintf(stderr, "error: %s\n", error.what());
    return 1;
  }
}
