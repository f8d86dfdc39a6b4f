// Compares the counts behind the predictions in bench/results/ with hand-computed numbers.
#include "tests/prediction/prediction.h"
#include "tests/support/catch.h"

namespace arbalest::tests::prediction {

using engine::Precision;

TEST_CASE("prediction: LeNet's operations agree with its layers") {
  const StepCosts costs = count_work({"lenet {}", dataflow::image_input({1, 28, 28}, 10), 32, Precision::kFloat32});
  // Forward, per image: 2 x 20 x 24 x 24 x 25 + 2 x 50 x 8 x 8 x 500 + 2 x 800 x 500 + 2 x 500 x 10. Backward: twice as
  // many, but once for the first layer, whose input has no gradient.
  CHECK(costs.operations == 32.0 * (2 * 576'000 + 3 * (3'200'000 + 800'000 + 10'000)));
}

TEST_CASE("prediction: the bytes of a linear classifier agree with a hand-computed sum") {
  const auto bytes_of_tensors = [](Precision precision, double parameter_bytes) {
    const StepCosts costs =
        count_work({"logistic_regression {}", dataflow::image_input({1, 28, 28}, 10), 4, precision});
    CHECK(costs.parameters >= 7850);
    return costs.bytes - parameter_bytes * static_cast<double>(costs.parameters);
  };
  // Dense layer: 12,544 bytes of images and 160 of logits, forward and backward. Loss with accuracy: 160 + 16 (labels)
  // + 12 (the loss and two counts) forward, and backward the same plus the gradient of 160. Parameters: the weights are
  // read twice, a gradient is written, and the update accesses six vectors.
  CHECK(bytes_of_tensors(Precision::kFloat32, 36.0) == 2 * 12'704 + 188 + 348);
}

// A node costs 2.5 to 3 microseconds, which determines the time of a step if there are few learners. So no change may
// add nodes unnoticed.
TEST_CASE("prediction: nodes of a step") {
  constexpr const char* kLenet = "lenet {}";
  CHECK(count_nodes(kLenet, Precision::kFloat32) == 18);        // 16, and copies of images and labels to the device
  CHECK(count_nodes(kLenet, Precision::kTensorFloat32) == 24);  // gradients of biases and orders of tensors
  CHECK(count_nodes(kLenet, Precision::kBFloat16) == 25);       // types of tensors
  constexpr const char* kResnet32 = "resnet_cifar { depth: 32 }";
  CHECK(count_nodes(kResnet32, Precision::kFloat32) == 200);
  CHECK(count_nodes(kResnet32, Precision::kTensorFloat32) == 201);
  CHECK(count_nodes(kResnet32, Precision::kBFloat16) == 202);
}

TEST_CASE("prediction: the largest of the three limits determines the time") {
  const Gpu gpu{.bytes_per_second = 1e9,
                .float32_operations_per_second = 1e9,
                .least_node_seconds = 1.0,
                .most_node_seconds = 2.0};
  const StepCosts costs{.operations = 3e9, .bytes = 1e9, .parameters = 250'000'000};
  const Prediction one = predict(gpu, costs, 5, Precision::kFloat32, 1);
  CHECK(one.least_seconds == Approx(5.0));
  CHECK(one.most_seconds == Approx(10.0));
  CHECK(one.limit == Limit::kNodes);
  // Averaging of two replicas moves (2 + 3) x 4 x 250 million bytes.
  const Prediction two = predict(gpu, costs, 3, Precision::kFloat32, 2);
  CHECK(two.byte_seconds == Approx(7.0));
  CHECK(two.operation_seconds == Approx(6.0));
  CHECK(two.most_seconds == Approx(7.0));
  CHECK(two.limit == Limit::kBytes);
  CHECK(predict(gpu, costs, 1, Precision::kFloat32, 1).limit == Limit::kOperations);
}

}  // namespace arbalest::tests::prediction
