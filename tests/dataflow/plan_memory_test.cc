// What plans take of memory: far less than a buffer for each output and each gradient.
#include "dataflow/plan.h"
#include "engine/devices.h"
#include "tests/support/catch.h"
#include "tests/support/zoo_layers.h"

namespace arbalest::tests {

// Half of that would be gradients, of which few live at a time; most values wait for backward.
TEST_CASE("a plan of ResNet-50 takes less than half of a buffer for each output and gradient") {
  const dataflow::InputDescription imagenet{{3, 224, 224}, 1000};
  const auto graph = dataflow::Graph::build(imagenet, zoo_layers("resnet { depth: 50 }", imagenet));
  const auto device = engine::open_device(engine::parse_device("cpu"));
  const dataflow::Plan plan(graph, *device, {.batch = 32});
  CAPTURE(plan.arena_bytes(), plan.bytes_without_reuse());
  CHECK(static_cast<double>(plan.arena_bytes()) < 0.48 * static_cast<double>(plan.bytes_without_reuse()));
}

}  // namespace arbalest::tests
