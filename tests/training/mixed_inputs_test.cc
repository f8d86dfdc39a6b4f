// Training on examples that no file format of ours has: two features of different types, and a number as the label.
// The description alone says so: rings, copies, plans and learners have no code for it.
#include <algorithm>
#include <cmath>
#include <memory>
#include <span>
#include <string>
#include <utility>
#include <vector>

#include "dataflow/folding/batch_norm_folding.h"
#include "dataflow/input/batches/batch_memory.h"
#include "dataflow/layers/branch_layers.h"
#include "dataflow/layers/embedding.h"
#include "dataflow/layers/inner_product.h"
#include "dataflow/layers/outputs/squared_error.h"
#include "learners/inference_runner.h"
#include "tests/support/catch.h"
#include "tests/support/training_rig.h"

namespace arbalest::tests {

namespace {

constexpr std::int64_t kColumns = 2;
constexpr std::int64_t kLimits[kColumns] = {5, 3};
constexpr std::int64_t kExamples = 90;

struct Row {
  float values[kColumns];
  std::int32_t columns[kColumns];
};

Row row_of(std::int64_t example) {
  dataflow::RandomSequence random(3, 1, static_cast<std::uint64_t>(example));
  Row row{};
  for (std::size_t i = 0; i < kColumns; ++i) {
    row.values[i] = 0.01F * static_cast<float>(random.below(200)) - 1.0F;
    row.columns[i] = static_cast<std::int32_t>(random.below(static_cast<std::uint64_t>(kLimits[i])));
  }
  return row;
}

// A model of the same form as the one that is trained can predict this exactly.
float target_of(const Row& row) {
  float target = 0.5F;
  for (std::size_t i = 0; i < kColumns; ++i) {
    target += row.values[i] * static_cast<float>(row.columns[0] - 2 * row.columns[1]) / static_cast<float>(1 + i);
  }
  return target;
}

// Values and the numbers of the columns that they stand in, with a number to be predicted from them.
class SparseRows final : public dataflow::Dataset {
 public:
  const std::string& name() const noexcept override { return name_; }
  const dataflow::InputDescription& description() const noexcept override { return description_; }
  std::int64_t size() const noexcept override { return kExamples; }
  void read(std::int64_t example, const dataflow::ExamplePosition& /*position*/,
            std::span<const dataflow::InputTensor> features) const override {
    const Row row = row_of(example);
    std::ranges::copy(row.values, features[0].as<float>().begin());
    std::ranges::copy(row.columns, features[1].as<std::int32_t>().begin());
  }
  void read_label(std::int64_t example, const dataflow::InputTensor& label) const override {
    label.as<float>().front() = target_of(row_of(example));
  }

 private:
  std::string name_ = "sparse rows";
  dataflow::InputDescription description_{{{"values", engine::DType::kFloat32, {kColumns}},
                                           {"columns", engine::DType::kInt32, {kColumns}, {kLimits[0], kLimits[1]}},
                                           {"label", engine::DType::kFloat32, {}}}};
};

// (table0[column 0] + table1[column 1]) * values + bias
std::vector<dataflow::LayerDescription> layers() {
  using namespace dataflow;
  const auto table = [](std::int64_t column) {
    return std::make_shared<EmbeddingLayer>(
        EmbeddingLayer::Options{.rows = kLimits[column], .width = kColumns, .column = column});
  };
  return {{"table0", {"columns"}, table(0)},
          {"table1", {"columns"}, table(1)},
          {"weights", {"table0", "table1"}, std::make_shared<AddLayer>()},
          {"prediction",
           {"weights", "values"},
           std::make_shared<InnerProductLayer>(InnerProductLayer::Options{.has_bias = true})},
          {"loss", {"prediction", "label"}, std::make_shared<SquaredErrorLayer>()}};
}

RigOptions rig_options() {
  RigOptions options;
  options.data = [] { return std::make_unique<SparseRows>(); };
  options.examples = kExamples;
  options.learners = {2};
  options.batch = 4;  // the last mini-batch of an evaluation has 2 examples
  options.layers = layers();
  options.rule = engine::Sgd{.momentum = 0.9F, .weight_decay = 0.0F};
  options.learning_rate.base = 0.05;
  return options;
}

// The mean squared error of the rig's model, computed from its tensors.
double expected_loss(TrainingRig& rig) {
  const std::vector<dataflow::NamedTensor> model = rig.scheduler().snapshot();
  const auto tensor = [&](const std::string& name) {
    const auto found = std::ranges::find(model, name, &dataflow::NamedTensor::name);
    REQUIRE(found != model.end());
    return found->values;
  };
  const std::vector<float> tables[] = {tensor("table0.weight"), tensor("table1.weight")};
  const double bias = tensor("prediction.bias").front();
  double sum = 0.0;
  for (std::int64_t example = 0; example < kExamples; ++example) {
    const Row row = row_of(example);
    double prediction = bias;
    for (std::size_t i = 0; i < kColumns; ++i) {
      for (std::size_t t = 0; t < std::size(tables); ++t) {
        const auto at = static_cast<std::size_t>(row.columns[t]) * kColumns + i;
        prediction += static_cast<double>(tables[t][at]) * static_cast<double>(row.values[i]);
      }
    }
    sum += std::pow(prediction - static_cast<double>(target_of(row)), 2.0);
  }
  return sum / static_cast<double>(kExamples);
}

}  // namespace

TEST_CASE("a graph of several features is prepared for predictions", "[training]") {
  const dataflow::Graph graph = dataflow::Graph::build(SparseRows().description(), layers());
  const dataflow::BatchNormFolding folding(graph);
  REQUIRE(folding.graph().nodes().size() == graph.nodes().size());
  for (std::size_t n = 0; n < graph.nodes().size(); ++n) {
    CHECK(folding.graph().nodes()[n].inputs == graph.nodes()[n].inputs);
  }
}

TEST_CASE("examples with several features are trained on and evaluated as their description says", "[training]") {
  TrainingRig rig(rig_options());
  const scheduler::Evaluation before = rig.scheduler().evaluate(rig.test_ring());
  CHECK(before.examples == kExamples);
  CHECK(before.loss() == Approx(expected_loss(rig)).epsilon(1e-5));
  rig.run(300);
  const scheduler::Evaluation after = rig.scheduler().evaluate(rig.test_ring());
  CHECK(after.loss() == Approx(expected_loss(rig)).epsilon(1e-3).margin(1e-9));
  CHECK(after.loss() < 1e-3 * before.loss());
}

TEST_CASE("a mini-batch with other tensors than the plan reads is refused", "[training]") {
  TrainingRig rig(rig_options());
  const dataflow::InputDescription& described = rig.data().description();
  dataflow::InputDescription swapped = described;
  std::swap(swapped.tensors[0], swapped.tensors[1]);
  dataflow::InputDescription renamed = described;
  renamed.tensors[0].name = "numbers";
  dataflow::InputDescription longer = described;
  longer.tensors[0].shape = {kColumns + 1};
  dataflow::InputDescription fewer = described;
  fewer.tensors.erase(fewer.tensors.begin());
  engine::Device& device = rig.pools()[0]->device();
  learners::InferenceModel model(rig.pools()[0]->training_plan().graph(), device, {.batch = 4});
  learners::InferenceRunner runner(model);
  const std::int64_t indices[4] = {0, 1, 2, 3};
  for (const dataflow::InputDescription& other : {swapped, renamed, longer, fewer}) {
    const dataflow::BatchMemory memory(other, 4, device);
    const dataflow::Batch batch{.indices = indices, .tensors = memory.batch(), .examples = 4};
    CHECK_THROWS_AS(runner.run(batch), engine::Error);
  }
  const dataflow::BatchMemory memory(described, 4, device);
  for (const dataflow::InputTensor& tensor : memory.batch()) std::ranges::fill(tensor.bytes(), std::byte{0});
  CHECK_NOTHROW(runner.run({.indices = indices, .tensors = memory.batch(), .examples = 4}));
}

}  // namespace arbalest::tests
