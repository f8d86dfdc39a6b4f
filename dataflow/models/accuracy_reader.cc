#include "dataflow/models/accuracy_reader.h"

#include <algorithm>

#include "dataflow/layers/outputs/classification.h"

namespace arbalest::dataflow {

namespace {

bool has_role(const LayerDescription& layer, LayerRole role) {
  return layer.layer != nullptr && layer.layer->role() == role;
}

}  // namespace

std::shared_ptr<const Layer> read_accuracy(const v1::Accuracy& message, FieldIssues& issues) {
  const std::vector<std::int32_t> top_k(message.top_k().begin(), message.top_k().end());
  if (top_k.size() > AccuracyLayer::kMaxTopK) {
    issues.add("top_k",
               fmt::format("top_k may have at most {} numbers, not {}", AccuracyLayer::kMaxTopK, top_k.size()));
  }
  for (auto k = top_k.begin(); k != top_k.end(); ++k) {
    const std::string path = fmt::format("top_k[{}]", k - top_k.begin());
    if (*k < 2) issues.add(path, fmt::format("top_k must be at least 2, not {}; top-1 accuracy is `accuracy`", *k));
    if (std::find(top_k.begin(), k, *k) != k) issues.add(path, fmt::format("top_k has {} twice", *k));
  }
  if (top_k.empty()) return std::make_shared<AccuracyLayer>();
  return std::make_shared<AccuracyLayer>(top_k);
}

void append_accuracy(const v1::Accuracy& message, std::vector<LayerDescription>& layers, FieldIssues& issues) {
  FieldIssues own;
  const std::shared_ptr<const Layer> accuracy = read_accuracy(message, own);
  for (const FieldIssue& issue : own.all()) issues.add("accuracy." + issue.path, issue.message);
  const auto listed =
      std::ranges::find_if(layers, [](const LayerDescription& layer) { return has_role(layer, LayerRole::kMetric); });
  if (listed != layers.end()) {
    issues.add("accuracy", fmt::format("layer '{}' is an accuracy layer already; give it the top_k", listed->name));
    return;
  }
  const auto loss = std::find_if(layers.rbegin(), layers.rend(),
                                 [](const LayerDescription& layer) { return has_role(layer, LayerRole::kLoss); });
  if (loss == layers.rend()) return;  // building the graph reports that
  if (loss->layer->label_type() != engine::DType::kInt32) {
    issues.add("accuracy", "accuracy is for classifiers, but the model predicts numbers; remove it");
    return;
  }
  std::string name = "accuracy";
  while (std::ranges::count(layers, name, &LayerDescription::name) > 0) name += "_";
  layers.push_back({name, loss->inputs, accuracy, own.empty()});
}

}  // namespace arbalest::dataflow
