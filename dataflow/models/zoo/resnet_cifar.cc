// Residual networks for small images (He et al., 2015, section 4.2), with shortcuts without parameters (option A).
#include <map>

#include "dataflow/models/zoo/zoo_builder.h"

namespace arbalest::dataflow {

namespace {

const std::map<int, int>& blocks_of_depth() {  // blocks in each of three stages
  static const std::map<int, int> kBlocks{{20, 3}, {32, 5}, {44, 7}, {56, 9}, {110, 18}};
  return kBlocks;
}

void add_block(ZooBuilder& model, const std::string& name, int channels, int stride) {
  const std::string input = model.last();
  model.conv_bn(name + ".conv1", name + ".bn1", channels, {.kernel = 3, .stride = stride, .padding = 1});
  model.relu(name + ".relu1");
  model.conv_bn(name + ".conv2", name + ".bn2", channels, {.kernel = 3, .padding = 1});
  const std::string residual = model.last();
  if (stride > 1) model.from(input).padded_shortcut(name + ".shortcut", channels, stride);
  model.add(name + ".add", residual, stride > 1 ? model.last() : input);
  model.relu(name + ".relu2");
}

}  // namespace

void resnet_cifar(const v1::ResnetCifar& options, ZooBuilder& model) {
  const int* blocks = model.choose("depth", options.depth(), blocks_of_depth());
  if (blocks == nullptr) return;
  model.conv_bn("conv1", "bn1", 16, {.kernel = 3, .padding = 1});
  model.relu("relu");
  for (int stage = 1; stage <= 3; ++stage) {
    for (int i = 0; i < *blocks; ++i) {
      add_block(model, fmt::format("layer{}.{}", stage, i), 8 << stage, stage > 1 && i == 0 ? 2 : 1);
    }
  }
  model.global_average_pool("avgpool");
  model.classify("fc");
}

}  // namespace arbalest::dataflow
