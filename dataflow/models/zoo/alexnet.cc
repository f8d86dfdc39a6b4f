#include "dataflow/models/zoo/alexnet.h"

namespace arbalest::dataflow {

namespace {

// Three poolings, after the first, the second and the last convolution.
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

}  // namespace

void alexnet(const v1::Alexnet& options, ZooBuilder& model) {
  model.check_range("dropout", options.dropout(), kDropoutRatio);
  model.require_sides(kSmallestSide);
  torchvision_alexnet(options.dropout(), model);
}

}  // namespace arbalest::dataflow
