// A residual sum that is fused into batch norm, compared with the definition.
#include "dataflow/layers/activation.h"
#include "dataflow/layers/batch_norm.h"
#include "dataflow/layers/branch_layers.h"
#include "dataflow/layers/outputs/classification.h"
#include "tests/support/catch.h"
#include "tests/support/numbers.h"
#include "tests/support/read_example.h"
#include "tests/support/reference_ops.h"
#include "tests/support/training_rig.h"

namespace arbalest::tests {
namespace {

constexpr std::int64_t kHidden = 6;
constexpr std::int64_t kClasses = 3;
constexpr float kEpsilon = 1e-3F;

// ReLU(h + batch norm of h). Nothing reads h after the sum, so the output could reuse h's buffer.
std::vector<dataflow::LayerDescription> network() {
  dataflow::BatchNormLayer::Options norm;
  norm.epsilon = kEpsilon;
  return {{"hidden", {"image"}, dense_layer(kHidden)},
          {"norm", {"hidden"}, std::make_shared<dataflow::BatchNormLayer>(norm)},
          {"sum", {"hidden", "norm"}, std::make_shared<dataflow::AddLayer>()},
          {"relu", {"sum"}, std::make_shared<dataflow::ActivationLayer>(engine::ActivationKind::kRelu)},
          {"logits", {"relu"}, dense_layer(kClasses)},
          {"loss", {"logits", "label"}, std::make_shared<dataflow::SoftmaxCrossEntropyLayer>()}};
}

// Mean over all examples.
double expected_loss(TrainingRig& rig) {
  std::map<std::string, Values> w;
  for (const auto& tensor : rig.scheduler().snapshot()) w[tensor.name] = {tensor.values.begin(), tensor.values.end()};
  Values images;
  Labels labels;
  std::vector<float> image(static_cast<std::size_t>(rig.data().description().image().elements()));
  for (std::int64_t example = 0; example < rig.data().size(); ++example) {
    read_image(rig.data(), example, {}, image.data());
    images.insert(images.end(), image.begin(), image.end());
    labels.push_back(dataflow::class_of(rig.data(), example));
  }
  const std::int64_t n = rig.data().size();
  const Values hidden = dense(n, images, w["hidden.weight"], w["hidden.bias"], kHidden);
  Values sum = batch_norm_by({n, kHidden}, hidden, w["norm.weight"], w["norm.bias"], w["norm.running_mean"],
                             w["norm.running_var"], double{kEpsilon});
  for (std::size_t i = 0; i < sum.size(); ++i) sum[i] += hidden[i];
  const Values logits =
      dense(n, activation(sum, engine::ActivationKind::kRelu), w["logits.weight"], w["logits.bias"], kClasses);
  return softmax_cross_entropy(kClasses, logits, labels) / static_cast<double>(n);
}

}  // namespace

TEST_CASE("a batch norm that is added to its own input is evaluated with that input", "[training]") {
  RigOptions options;
  options.layers = network();
  options.batch = 8;
  TrainingRig rig(options);
  rig.run(6);
  CHECK(rig.scheduler().evaluate(rig.test_ring()).loss() == Approx(expected_loss(rig)).epsilon(1e-4));
}

}  // namespace arbalest::tests
