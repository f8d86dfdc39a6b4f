// The number of a step's nodes, which bounds the speed of small learners: a GPU begins about two kernels a microsecond.
#include "tests/cuda_stand_in/stand_in.h"
#include "tests/support/catch.h"
#include "tests/support/small_training.h"
#include "tests/support/zoo_layers.h"

namespace arbalest::tests {
namespace {

// Nodes of a training step of `learners` learners in one team, in float32 and with data on the device.
std::size_t nodes_of_step(const std::string& model, const engine::Shape& image, int learners) {
  cuda_stand_in::reset();
  RigOptions options = options_on({"cuda:0"}, {learners});
  options.team = learners;
  options.image = image;
  options.classes = 10;
  options.batch = 4;
  options.examples = 16;
  options.layers = zoo_layers(model, dataflow::image_input(image, 10));
  options.input = RigInput::kResident;
  const TrainingRig rig(options);
  const std::vector<std::size_t> nodes = cuda_stand_in::nodes_of_graphs();
  // A team records the gradient, an update and an evaluation; with averaging, it then records its update again.
  REQUIRE(nodes.size() == (learners == 1 ? 3U : 4U));
  return nodes[0] + (learners == 1 ? nodes[1] : nodes[3]);
}

}  // namespace

TEST_CASE("the number of a step's nodes does not depend on the team", "[training]") {
  for (const int team : {2, 4, 8}) {
    INFO("a team of " << team);
    CHECK(nodes_of_step("lenet {}", {1, 28, 28}, team) == 15);
    CHECK(nodes_of_step("resnet_cifar { depth: 32 }", {3, 32, 32}, team) == 197);
  }
  // Without averaging, a step with a number that is not finite is refused as a whole, which takes another node.
  CHECK(nodes_of_step("lenet {}", {1, 28, 28}, 1) == 16);
  CHECK(nodes_of_step("resnet_cifar { depth: 32 }", {3, 32, 32}, 1) == 198);
}

}  // namespace arbalest::tests
