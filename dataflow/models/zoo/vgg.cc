// VGG (Simonyan and Zisserman, 2015); layers are named as in torchvision.
#include <map>

#include "dataflow/models/zoo/zoo_builder.h"

namespace arbalest::dataflow {

namespace {

// By depth: the number of convolutions before each pooling.
const std::map<int, std::vector<int>>& convolutions_of_depth() {
  static const std::map<int, std::vector<int>> kConvolutions{
      {11, {1, 1, 2, 2, 2}}, {16, {2, 2, 3, 3, 3}}, {19, {2, 2, 4, 4, 4}}};
  return kConvolutions;
}

}  // namespace

void vgg(const v1::Vgg& options, ZooBuilder& model) {
  model.require_sides(32);  // the image is halved five times
  const std::vector<int>* stages = model.choose("depth", options.depth(), convolutions_of_depth());
  if (stages == nullptr) return;

  int number = 0;
  const auto next = [&] { return fmt::format("features.{}", number++); };
  for (std::size_t stage = 0; stage < stages->size(); ++stage) {
    const int filters = std::min(64 << stage, 512);
    for (int i = 0; i < (*stages)[stage]; ++i) {
      model.conv(next(), filters, {.kernel = 3, .padding = 1});
      if (options.batch_norm()) model.batch_norm(next());
      model.relu(next());
    }
    model.max_pool(next(), {.kernel = 2, .stride = 2});
  }

  number = 0;
  const std::vector<int> hidden =
      options.head() == v1::Vgg::CIFAR ? std::vector<int>{512} : std::vector<int>{4096, 4096};
  for (const int units : hidden) {
    model.dense(fmt::format("classifier.{}", number++), units);
    model.relu(fmt::format("classifier.{}", number++));
    model.dropout(fmt::format("classifier.{}", number++), options.dropout());
  }
  model.classify(fmt::format("classifier.{}", number));
}

}  // namespace arbalest::dataflow
