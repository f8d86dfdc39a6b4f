#include "dataflow/layout_description.h"

#include <memory>

#include "dataflow/layers/dense.h"
#include "dataflow/layers/images/conv2d.h"
#include "dataflow/layers/outputs/classification.h"
#include "dataflow/memory/plan.h"
#include "engine/backends/devices.h"
#include "engine/base/error.h"
#include "tests/support/catch.h"

namespace {

using namespace arbalest;
using namespace arbalest::dataflow;

Plan small_plan(engine::Device& device, const ParameterLayout* parameters = nullptr) {
  Conv2dLayer::Options conv;
  conv.filters = 24;
  conv.window = {.kernel = {3, 3}, .stride = {1, 1}, .padding = {1, 1}};
  Conv2dLayer::Options grouped = conv;
  grouped.groups = 4;
  DenseLayer::Options classes;
  classes.units = 3;
  const std::vector<LayerDescription> layers{
      {"conv", {"image"}, std::make_shared<Conv2dLayer>(conv)},
      {"grouped", {"conv"}, std::make_shared<Conv2dLayer>(grouped)},
      {"logits", {"grouped"}, std::make_shared<DenseLayer>(classes)},
      {"loss", {"logits", "label"}, std::make_shared<SoftmaxCrossEntropyLayer>()}};
  const Graph graph = Graph::build(dataflow::image_input({3, 8, 8}, 3), layers);
  return {graph, device, {.batch = 4, .parameters = parameters}};
}

TEST_CASE("layout description: a layout comes back from its text") {
  const auto device = engine::open_device(engine::parse_device(ARBALEST_TEST_DEVICE));
  const Plan plan = small_plan(*device);
  const std::vector<std::string> description = describe_layout(plan.parameters());
  REQUIRE(description.size() == plan.parameters().entries().size());
  CHECK_THAT(description.front(), ContainsSubstring("conv.weight 24x3x3x3 at 0 of "));
  const ParameterLayout again = layout_of(description, plan.parameters(), *device);
  CHECK(again.elements() == plan.parameters().elements());
  for (std::size_t i = 0; i < description.size(); ++i) {
    CHECK(again.entries()[i].native == plan.parameters().entries()[i].native);
    CHECK(again.entries()[i].offset == plan.parameters().entries()[i].offset);
  }
}

// As on a processor whose kernels want another one.
TEST_CASE("layout description: a plan takes a layout that its device does not prefer") {
  const auto device = engine::open_device(engine::parse_device(ARBALEST_TEST_DEVICE));
  std::vector<ParameterEntry> entries = small_plan(*device).parameters().entries();
  for (ParameterEntry& entry : entries) entry.native = device->plain_layout(entry.spec.shape, engine::DType::kFloat32);
  const ParameterLayout plain(entries);
  CHECK(describe_layout(small_plan(*device, &plain).parameters()) == describe_layout(plain));
}

TEST_CASE("layout description: texts of other parameters or devices are refused") {
  const auto device = engine::open_device(engine::parse_device(ARBALEST_TEST_DEVICE));
  const Plan plan = small_plan(*device);
  const std::vector<std::string> description = describe_layout(plan.parameters());
  const auto error_of = [&](const std::vector<std::string>& text) -> std::string {
    try {
      layout_of(text, plan.parameters(), *device);
    } catch (const engine::Error& error) {
      CHECK(error.kind() == engine::ErrorKind::kDevice);
      return error.what();
    }
    return "";
  };
  CHECK_THAT(error_of({description.front()}), ContainsSubstring("cannot have a layout of 1"));
  std::vector<std::string> exchanged = description;
  std::swap(exchanged[0], exchanged[1]);
  CHECK_THAT(error_of(exchanged), ContainsSubstring("is not the layout of parameter 'conv.weight'"));
  for (const char* numbers : {"", "9", "7 7", "4 0 24 24 27 3 3 9 3 3 3 3 3", "4 1 24 24 27 3 3 9 3 3 3 3 3 1 9 8",
                              "4 0 24 24 27 3 3 9 3 3 3 2 2 1", "x"}) {
    std::vector<std::string> wrong = description;
    wrong[0] = wrong[0].substr(0, wrong[0].rfind(": ") + 2) + numbers;
    CAPTURE(wrong[0]);
    CHECK(!error_of(wrong).empty());
  }
}

}  // namespace
