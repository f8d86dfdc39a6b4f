// Memory of bfloat16 plans. tests/training/learner_memory_test.cc tests float32 plans.
#include "dataflow/memory/plan.h"
#include "engine/backends/devices.h"
#include "tests/support/bfloat16.h"
#include "tests/support/catch.h"
#include "tests/support/skip.h"
#include "tests/support/zoo_layers.h"

namespace arbalest::tests {
namespace {

dataflow::Graph resnet50() {
  const dataflow::InputDescription imagenet = dataflow::image_input({3, 224, 224}, 1000);
  return dataflow::Graph::build(imagenet, zoo_layers("resnet { depth: 50 }", imagenet));
}

double part(std::size_t a, std::size_t b) { return static_cast<double>(a) / static_cast<double>(b); }

}  // namespace

TEST_CASE("BF16 tensors take half the memory") {
  const auto device = engine::open_device(engine::parse_device("cpu"));
  if (!cpu_computes_bfloat16()) skip_test("needs a processor with AVX-512");
  const dataflow::Graph graph = resnet50();
  const dataflow::Plan exact(graph, *device, {.batch = 4});
  const dataflow::Plan halves(graph, *device, {.batch = 4, .precision = engine::Precision::kBFloat16});
  CHECK(part(halves.bytes_without_reuse(), exact.bytes_without_reuse()) == Approx(0.5).epsilon(1e-3));
  CHECK(part(halves.arena_bytes(), exact.arena_bytes()) < 0.6);  // the mini-batch exists in both types
}

}  // namespace arbalest::tests
