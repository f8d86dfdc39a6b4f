// MobileNet-v1 (Howard et al., 2017): depthwise separable convolutions; layers are named like torchvision's MobileNets.
#include "dataflow/models/zoo/zoo_builder.h"

namespace arbalest::dataflow {

namespace {

// Names: "features.1.0", "features.1.1", ...
class Features {
 public:
  explicit Features(ZooBuilder& model) : model_(model) {}

  void begin() {
    ++block_;
    part_ = 0;
  }
  void conv_bn_relu(int filters, const FilterOptions& filter) {
    const std::string conv = next();
    model_.conv_bn(conv, next(), filters, filter);
    model_.relu(next());
  }

 private:
  std::string next() { return fmt::format("features.{}.{}", block_, part_++); }

  ZooBuilder& model_;
  int block_ = -1;
  int part_ = 0;
};

}  // namespace

void mobilenet_v1(ZooBuilder& model) {
  struct Block {
    int filters;
    int stride;
  };
  const Block blocks[] = {{64, 1},  {128, 2}, {128, 1}, {256, 2}, {256, 1},  {512, 2}, {512, 1},
                          {512, 1}, {512, 1}, {512, 1}, {512, 1}, {1024, 2}, {1024, 1}};
  Features features(model);
  int channels = 32;
  features.begin();
  features.conv_bn_relu(channels, {.kernel = 3, .stride = 2, .padding = 1});
  for (const Block& block : blocks) {
    features.begin();
    features.conv_bn_relu(channels, {.kernel = 3, .stride = block.stride, .padding = 1, .groups = channels});
    features.conv_bn_relu(block.filters, {.kernel = 1});
    channels = block.filters;
  }
  model.global_average_pool("avgpool");
  model.classify("fc");
}

}  // namespace arbalest::dataflow
