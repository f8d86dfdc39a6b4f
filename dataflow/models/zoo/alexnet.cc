// AlexNet (Krizhevsky et al., 2012) in torchvision's or Caffe's version, with that version's layer names.
#include "dataflow/models/zoo/zoo_builder.h"

namespace arbalest::dataflow {

namespace {

// Common to both versions: poolings after the first, the second and the last convolution.
constexpr int kSmallestSide = 63;
const FilterOptions kPool{.kernel = 3, .stride = 2};

// "One weird trick for parallelizing convolutional neural networks" (Krizhevsky, 2014).
void torchvision_alexnet(float dropout, ZooBuilder& model) {
  struct Step {
    int filters;
    FilterOptions filter;
    bool is_pooled;
  };
  const Step steps[] = {{64, {.kernel = 11, .stride = 4, .padding = 2}, true},
                        {192, {.kernel = 5, .padding = 2}, true},
                        {384, {.kernel = 3, .padding = 1}, false},
                        {256, {.kernel = 3, .padding = 1}, false},
                        {256, {.kernel = 3, .padding = 1}, true}};
  int number = 0;
  const auto next = [&] { return fmt::format("features.{}", number++); };
  for (const Step& step : steps) {
    model.conv(next(), step.filters, step.filter);
    model.relu(next());
    if (step.is_pooled) model.max_pool(next(), kPool);
  }
  model.dropout("classifier.0", dropout);
  model.dense("classifier.1", 4096);
  model.relu("classifier.2");
  model.dropout("classifier.3", dropout);
  model.dense("classifier.4", 4096);
  model.relu("classifier.5");
  model.classify("classifier.6");
}

// The network of the paper, which was split over two GPUs.
void grouped_alexnet(float dropout, ZooBuilder& model) {
  const auto normalized_pool = [&](const std::string& number) {
    model.relu("relu" + number);
    model.local_response_norm("norm" + number);
    model.max_pool("pool" + number, kPool);
  };
  model.conv("conv1", 96, {.kernel = 11, .stride = 4, .padding = 2});
  normalized_pool("1");
  model.conv("conv2", 256, {.kernel = 5, .padding = 2, .groups = 2});
  normalized_pool("2");
  model.conv("conv3", 384, {.kernel = 3, .padding = 1});
  model.relu("relu3");
  model.conv("conv4", 384, {.kernel = 3, .padding = 1, .groups = 2});
  model.relu("relu4");
  model.conv("conv5", 256, {.kernel = 3, .padding = 1, .groups = 2});
  model.relu("relu5");
  model.max_pool("pool5", kPool);
  for (const std::string number : {"6", "7"}) {
    model.dense("fc" + number, 4096);
    model.relu("relu" + number);
    model.dropout("drop" + number, dropout);
  }
  model.classify("fc8");
}

}  // namespace

void alexnet(const v1::Alexnet& options, ZooBuilder& model) {
  model.require_sides(kSmallestSide);
  if (options.variant() == v1::Alexnet::GROUPED) {
    grouped_alexnet(options.dropout(), model);
  } else {
    torchvision_alexnet(options.dropout(), model);
  }
}

}  // namespace arbalest::dataflow
