// Residual networks for ImageNet; layers are named as in torchvision.
#include <map>

#include "dataflow/models/zoo/zoo_builder.h"

namespace arbalest::dataflow {

namespace {

struct Depth {
  bool has_bottlenecks;
  std::vector<int> blocks;  // blocks in each of the four stages
};

const std::map<int, Depth>& depths() {
  static const std::map<int, Depth> kDepths{{18, {false, {2, 2, 2, 2}}},
                                            {34, {false, {3, 4, 6, 3}}},
                                            {50, {true, {3, 4, 6, 3}}},
                                            {101, {true, {3, 4, 23, 3}}},
                                            {152, {true, {3, 8, 36, 3}}}};
  return kDepths;
}

struct Block {
  std::string name;  // "layer1.0"
  int width;         // filters of all convolutions except a bottleneck's last
  int stride;
  bool is_bottleneck;
  bool has_projection;  // whether the shortcut changes the shape

  int outputs() const { return is_bottleneck ? 4 * width : width; }
};

struct BlockConv {
  int filters;
  FilterOptions filter;
};

// `in_first`: whether the first convolution has the stride, whatever its kernel.
std::vector<BlockConv> convolutions(const Block& block, bool in_first) {
  const auto conv = [](int filters, int kernel, int stride) {
    return BlockConv{filters, {.kernel = kernel, .stride = stride, .padding = kernel / 2}};
  };
  if (!block.is_bottleneck) return {conv(block.width, 3, block.stride), conv(block.width, 3, 1)};
  return {conv(block.width, 1, in_first ? block.stride : 1), conv(block.width, 3, in_first ? 1 : block.stride),
          conv(block.outputs(), 1, 1)};
}

// Convolution, normalization, ReLU; the last ReLU follows the addition (He et al., 2015).
void add_block(ZooBuilder& model, const Block& block, bool stride_in_first) {
  const std::string input = model.last();
  const std::vector<BlockConv> convs = convolutions(block, stride_in_first);
  for (std::size_t i = 0; i < convs.size(); ++i) {
    if (i > 0) model.relu(fmt::format("{}.relu{}", block.name, i));
    model.conv_bn(fmt::format("{}.conv{}", block.name, i + 1), fmt::format("{}.bn{}", block.name, i + 1),
                  convs[i].filters, convs[i].filter);
  }
  const std::string residual = model.last();
  if (block.has_projection) {
    model.from(input).conv_bn(block.name + ".downsample.0", block.name + ".downsample.1", block.outputs(),
                              {.kernel = 1, .stride = block.stride});
  }
  model.add(block.name + ".add", residual, block.has_projection ? model.last() : input);
  model.relu(fmt::format("{}.relu{}", block.name, convs.size()));
}

// Normalization, ReLU, convolution, and nothing after the addition (He et al., 2016, "Identity Mappings in Deep
// Residual Networks").
void add_pre_activation_block(ZooBuilder& model, const Block& block) {
  std::string shortcut = model.last();
  const std::vector<BlockConv> convs = convolutions(block, false);
  for (std::size_t i = 0; i < convs.size(); ++i) {
    model.batch_norm(fmt::format("{}.bn{}", block.name, i + 1));
    model.relu(fmt::format("{}.relu{}", block.name, i + 1));
    if (i == 0 && block.has_projection) {
      const std::string activated = model.last();
      model.conv(block.name + ".downsample.0", block.outputs(), {.kernel = 1, .stride = block.stride})
          .set_use_bias(false);
      shortcut = model.last();
      model.from(activated);
    }
    model.conv(fmt::format("{}.conv{}", block.name, i + 1), convs[i].filters, convs[i].filter).set_use_bias(false);
  }
  model.add(block.name + ".add", model.last(), shortcut);
}

}  // namespace

void resnet(const v1::Resnet& options, ZooBuilder& model) {
  const Depth* depth = model.choose("depth", options.depth(), depths());
  if (depth == nullptr) return;
  const bool is_pre_activated = options.version() == v1::Resnet::V2;
  const FilterOptions first{.kernel = 7, .stride = 2, .padding = 3};
  if (is_pre_activated) {
    model.conv("conv1", 64, first).set_use_bias(false);
  } else {
    model.conv_bn("conv1", "bn1", 64, first);
    model.relu("relu");
  }
  model.max_pool("maxpool", {.kernel = 3, .stride = 2, .padding = 1});
  int channels = 64;
  for (int stage = 0; stage < 4; ++stage) {
    for (int i = 0; i < depth->blocks[static_cast<std::size_t>(stage)]; ++i) {
      Block block{.name = fmt::format("layer{}.{}", stage + 1, i),
                  .width = 64 << stage,
                  .stride = stage > 0 && i == 0 ? 2 : 1,
                  .is_bottleneck = depth->has_bottlenecks,
                  .has_projection = false};
      block.has_projection = block.stride > 1 || block.outputs() != channels;
      if (is_pre_activated) {
        add_pre_activation_block(model, block);
      } else {
        add_block(model, block, options.version() == v1::Resnet::V1);
      }
      channels = block.outputs();
    }
  }
  if (is_pre_activated) {
    model.batch_norm("bn");
    model.relu("relu");
  }
  model.global_average_pool("avgpool");
  model.classify("fc");
}

}  // namespace arbalest::dataflow
