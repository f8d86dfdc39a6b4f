// The traffic of split layers that `arbalest inspect --links` calculates is what devices exchange when they train.
#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "engine/host/topology.h"
#include "tests/support/catch.h"
#include "tests/support/small_training.h"
#include "train/parallelism/parallelism_costs.h"

namespace arbalest::tests {

namespace {

using dataflow::DenseSplit;

constexpr int kDevices = 4;
constexpr DenseSplit kNone = DenseSplit::kNone;
constexpr DenseSplit kColumns = DenseSplit::kColumns;
constexpr DenseSplit kRows = DenseSplit::kRows;

// Dense layers with 72 inputs and 24 units, and with 24 inputs and 40 units, before the logits.
RigOptions options_with(DenseSplit first, DenseSplit second) {
  const std::string core = "cpu:" + std::to_string(engine::host::allowed_cores().front());
  RigOptions options = options_on(std::vector<std::string>(kDevices, core), std::vector<int>(kDevices, 1));
  options.layers = {{"first", {"image"}, dense_layer(24, first)},
                    {"relu", {"first"}, std::make_shared<dataflow::ActivationLayer>(engine::ActivationKind::kRelu)},
                    {"second", {"relu"}, dense_layer(40, second)},
                    {"logits", {"second"}, dense_layer(3, kNone)},
                    {"loss", {"logits", "label"}, std::make_shared<dataflow::SoftmaxCrossEntropyLayer>()}};
  options.synchronization = sma::defaults_of(sma::Scheme::kSSgd);
  return options;
}

jobs::LayerSizes sizes_of(const std::string& name) {
  const RigOptions options = options_with(kNone, kNone);
  const MadeUpImages data(options.examples, options.image, options.classes);
  const dataflow::Graph graph = dataflow::Graph::build(data.description(), options.layers);
  for (const jobs::LayerSizes& layer : jobs::layer_sizes(graph, options.batch)) {
    if (layer.name == name) return layer;
  }
  FAIL("no layer " << name);
  return {};
}

// Trains for a few mini-batches and compares what each device has received, which is as much as it has sent.
void check_exchanges(const RigOptions& options, const std::optional<jobs::Traffic>& calculated) {
  REQUIRE(calculated);
  TrainingRig rig(options);
  std::vector<std::uint64_t> before;
  for (int rank = 0; rank < kDevices; ++rank) before.push_back(rig.exchange()->received_bytes(rank));
  constexpr int kSteps = 3;
  rig.run(kSteps);
  for (int rank = 0; rank < kDevices; ++rank) {
    const std::uint64_t received = rig.exchange()->received_bytes(rank) - before[static_cast<std::size_t>(rank)];
    CHECK(received == static_cast<std::uint64_t>(kSteps * calculated->bytes));
  }
}

}  // namespace

TEST_CASE("split costs: devices exchange the bytes that inspect calculates for a layer alone", "[split]") {
  const jobs::AssumedDevices devices{.count = kDevices, .link = jobs::parse_link("--links", "1GB/s,0us")};
  for (const DenseSplit by : {kColumns, kRows}) {
    CAPTURE(static_cast<int>(by));
    const RigOptions first = options_with(by, kNone);  // needs no gradient of its inputs
    check_exchanges(first, jobs::split_traffic(sizes_of("first"), by, first.batch, devices));
    const RigOptions second = options_with(kNone, by);
    check_exchanges(second, jobs::split_traffic(sizes_of("second"), by, second.batch, devices));
  }
}

TEST_CASE("split costs: devices exchange the bytes that inspect calculates for a pair and for layers in turn",
          "[split]") {
  const jobs::AssumedDevices devices{.count = kDevices, .link = jobs::parse_link("--links", "1GB/s,0us")};
  const RigOptions pair = options_with(kColumns, kRows);
  check_exchanges(pair, jobs::split_pair_traffic(sizes_of("first"), sizes_of("second"), pair.batch, devices));
  // Rows and then columns share nothing, so both layers send what they send alone.
  const RigOptions in_turn = options_with(kRows, kColumns);
  const auto first = jobs::split_traffic(sizes_of("first"), kRows, in_turn.batch, devices);
  const auto second = jobs::split_traffic(sizes_of("second"), kColumns, in_turn.batch, devices);
  REQUIRE((first && second));
  check_exchanges(in_turn, jobs::Traffic{.bytes = first->bytes + second->bytes});
}

}  // namespace arbalest::tests
