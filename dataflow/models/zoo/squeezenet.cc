// SqueezeNet 1.1 (Iandola et al., 2016, and its second release); layers are named as in torchvision.
#include "dataflow/models/zoo/zoo_builder.h"

namespace arbalest::dataflow {

namespace {

constexpr int kSmallestSide = 17;
constexpr float kClassifierStddev = 0.01F;  // of its initial weights, as in torchvision

// Squeezes the input to few channels, and expands these by 1x1 and by 3x3 convolutions, whose outputs it concatenates.
void fire(ZooBuilder& model, const std::string& name, int squeezed, int expanded) {
  const auto conv = [&](const std::string& part, int filters, const FilterOptions& filter) {
    model.conv(fmt::format("{}.{}", name, part), filters, filter);
    model.relu(fmt::format("{}.{}_activation", name, part));
    return model.last();
  };
  const std::string squeeze = conv("squeeze", squeezed, {.kernel = 1});
  const std::string pointwise = conv("expand1x1", expanded, {.kernel = 1});
  model.from(squeeze);
  const std::string spatial = conv("expand3x3", expanded, {.kernel = 3, .padding = 1});
  model.concat(name, {pointwise, spatial});
}

}  // namespace

void squeezenet(const v1::Squeezenet& options, ZooBuilder& model) {
  model.require_sides(kSmallestSide);
  int number = 0;
  const auto next = [&] { return fmt::format("features.{}", number++); };
  const auto pool = [&] { model.max_pool(next(), {.kernel = 3, .stride = 2}).set_ceil_mode(true); };
  model.conv(next(), 64, {.kernel = 3, .stride = 2});
  model.relu(next());
  for (const int squeezed : {16, 32}) {
    pool();
    for (int i = 0; i < 2; ++i) fire(model, next(), squeezed, 4 * squeezed);
  }
  pool();
  for (const int squeezed : {48, 48, 64, 64}) fire(model, next(), squeezed, 4 * squeezed);

  model.dropout("classifier.0", options.dropout());
  v1::Conv& classes = model.conv("classifier.1", model.classes(), {.kernel = 1});
  classes.mutable_weight()->mutable_initializer()->mutable_gaussian()->set_stddev(kClassifierStddev);
  model.relu("classifier.2");
  model.global_average_pool("classifier.3");
  model.add_layer("logits").mutable_flatten();
  model.add_loss("loss");
}

}  // namespace arbalest::dataflow
