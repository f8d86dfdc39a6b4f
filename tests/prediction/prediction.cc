#include "tests/prediction/prediction.h"

#include <algorithm>

namespace arbalest::tests::prediction {

namespace {

double operations_per_second(const Gpu& gpu, engine::Precision precision) {
  switch (precision) {
    case engine::Precision::kFloat32: return gpu.float32_operations_per_second;
    case engine::Precision::kTensorFloat32: return gpu.tensor_float32_operations_per_second;
    case engine::Precision::kBFloat16: break;
  }
  return gpu.bfloat16_operations_per_second;
}

}  // namespace

const char* to_string(Limit limit) {
  switch (limit) {
    case Limit::kNodes: return "nodes";
    case Limit::kBytes: return "bytes";
    case Limit::kOperations: break;
  }
  return "products";
}

Prediction predict(const Gpu& gpu, const StepCosts& costs, std::int64_t nodes, engine::Precision precision,
                   int learners) {
  const auto count = static_cast<double>(nodes);
  Prediction found;
  found.least_node_seconds = count * gpu.least_node_seconds;
  found.most_node_seconds = count * gpu.most_node_seconds;
  found.byte_seconds = (learners * costs.bytes + averaging_bytes(costs.parameters, learners)) / gpu.bytes_per_second;
  found.operation_seconds = learners * costs.operations / operations_per_second(gpu, precision);
  const double work = std::max(found.byte_seconds, found.operation_seconds);
  found.least_seconds = std::max(found.least_node_seconds, work);
  found.most_seconds = std::max(found.most_node_seconds, work);
  if (work > found.most_node_seconds) {
    found.limit = found.byte_seconds >= found.operation_seconds ? Limit::kBytes : Limit::kOperations;
  }
  return found;
}

}  // namespace arbalest::tests::prediction
