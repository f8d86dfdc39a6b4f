// MobileNet-v2 (Sandler et al., 2018): inverted residuals with linear bottlenecks; layers are named as in torchvision.
#include <algorithm>

#include "dataflow/models/zoo/zoo_builder.h"

namespace arbalest::dataflow {

namespace {

// `channels` times the width, rounded to a multiple of 8, and to the next one if that takes away more than a tenth.
int scaled(int channels, double width) {
  constexpr int kMultiple = 8;
  const double exact = channels * width;
  const int rounded = std::max(kMultiple, static_cast<int>(exact + kMultiple / 2.0) / kMultiple * kMultiple);
  return rounded < 0.9 * exact ? rounded + kMultiple : rounded;
}

// Layers "features.1.conv.0.0", ".1" and ".2" for the name "features.1.conv.0".
void conv_bn_relu6(ZooBuilder& model, const std::string& name, int filters, const FilterOptions& filter) {
  model.conv_bn(name + ".0", name + ".1", filters, filter);
  model.relu6(name + ".2");
}

struct InvertedResidual {
  std::string name;
  int inputs;  // channels
  int outputs;
  int expansion;  // channels between the two of them, as a multiple of the inputs
  int stride;
};

// A pointwise convolution to more channels, a depthwise one, and a pointwise one without activation. The first block
// expands nothing, so it has no first convolution.
void inverted_residual(ZooBuilder& model, const InvertedResidual& block) {
  const std::string input = model.last();
  const int hidden = block.inputs * block.expansion;
  int part = 0;
  const auto next = [&] { return fmt::format("{}.conv.{}", block.name, part++); };
  if (block.expansion != 1) conv_bn_relu6(model, next(), hidden, {.kernel = 1});
  conv_bn_relu6(model, next(), hidden, {.kernel = 3, .stride = block.stride, .padding = 1, .groups = hidden});
  const std::string projection = next();
  model.conv_bn(projection, next(), block.outputs, {.kernel = 1});
  if (block.stride == 1 && block.inputs == block.outputs) model.add(block.name + ".add", input, model.last());
}

}  // namespace

void mobilenet_v2(const v1::MobilenetV2& options, ZooBuilder& model) {
  if (!model.is_sound()) return;  // a wrong width may be no number of channels
  struct Stage {
    int expansion;
    int channels;
    int blocks;
    int stride;  // of the first block
  };
  const Stage stages[] = {{1, 16, 1, 1}, {6, 24, 2, 2},  {6, 32, 3, 2}, {6, 64, 4, 2},
                          {6, 96, 3, 1}, {6, 160, 3, 2}, {6, 320, 1, 1}};
  int index = 0;
  const auto next = [&] { return fmt::format("features.{}", index++); };
  int channels = scaled(32, options.width());
  conv_bn_relu6(model, next(), channels, {.kernel = 3, .stride = 2, .padding = 1});
  for (const Stage& stage : stages) {
    const int outputs = scaled(stage.channels, options.width());
    for (int b = 0; b < stage.blocks; ++b) {
      inverted_residual(model, {next(), channels, outputs, stage.expansion, b == 0 ? stage.stride : 1});
      channels = outputs;
    }
  }
  conv_bn_relu6(model, next(), scaled(1280, std::max(1.0, options.width())), {.kernel = 1});
  model.global_average_pool("avgpool");
  model.dropout("classifier.0", options.dropout());
  model.classify("classifier.1");
}

}  // namespace arbalest::dataflow
