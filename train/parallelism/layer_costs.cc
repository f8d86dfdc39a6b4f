#include "train/parallelism/layer_costs.h"

#include <algorithm>

namespace arbalest::jobs {

using dataflow::DenseSplit;

namespace {

constexpr std::int64_t kFloatBytes = 4;

Traffic traffic_of(std::int64_t messages, std::int64_t bytes, const Link& link) {
  return {bytes,
          static_cast<double>(messages) * link.latency_seconds + static_cast<double>(bytes) / link.bytes_per_second};
}

// An all-reduce of a vector that every device has.
Traffic all_reduce(std::int64_t elements, const AssumedDevices& devices) {
  if (elements == 0) return {};
  const std::int64_t messages = 2 * (std::int64_t{devices.count} - 1);
  return traffic_of(messages, (messages * kFloatBytes * elements + devices.count - 1) / devices.count, devices.link);
}

// The exchanges of a split layer, or of a pair of them. Each takes one message for each other device.
//   inputs, outputs: elements of one example that a device sends to each other device
Traffic exchanges(std::int64_t inputs, std::int64_t outputs, bool has_input_gradient, std::int64_t batch_size,
                  const AssumedDevices& devices) {
  const std::int64_t others = devices.count - 1;
  const std::int64_t of_inputs = has_input_gradient ? 2 : 1;
  constexpr std::int64_t kOfOutputs = 2;
  return traffic_of((of_inputs + kOfOutputs) * others,
                    others * kFloatBytes * batch_size * (of_inputs * inputs + kOfOutputs * outputs), devices.link);
}

bool can_split(const LayerSizes& layer, DenseSplit by, const AssumedDevices& devices) {
  const std::int64_t length = by == DenseSplit::kColumns ? layer.outputs : layer.inputs;
  return layer.is_dense && layer.parameters > 0 && length % devices.count == 0;
}

void split_the_faster_way(const LayerSizes& layer, std::int64_t batch_size, const AssumedDevices& devices,
                          LayerCosts& costs) {
  for (const DenseSplit by : {DenseSplit::kColumns, DenseSplit::kRows}) {
    const std::optional<Traffic> traffic = split_traffic(layer, by, batch_size, devices);
    if (!traffic || (costs.split && costs.split->seconds <= traffic->seconds)) continue;
    costs.split = traffic;
    costs.split_by = by;
  }
}

// Sends the gradients one after the other, the last layer's first, each when it is complete.
void hide_behind_backward_pass(std::span<const LayerSizes> layers, double flops_per_second,
                               std::vector<LayerCosts>& costs) {
  std::vector<double> ready(layers.size());
  double now = 0.0;
  for (std::size_t l = layers.size(); l-- > 0;) {
    now += static_cast<double>(layers[l].backward_flops) / flops_per_second;
    ready[l] = now;
  }
  double link_is_free = 0.0;
  for (std::size_t l = layers.size(); l-- > 0;) {
    const double begin = std::max(link_is_free, ready[l]);
    costs[l].hidden_seconds = std::clamp(now - begin, 0.0, costs[l].data.seconds);
    link_is_free = begin + costs[l].data.seconds;
    costs[l].compute_seconds =
        static_cast<double>(layers[l].forward_flops + layers[l].backward_flops) / flops_per_second;
  }
}

}  // namespace

std::vector<LayerCosts> layer_costs(std::span<const LayerSizes> layers, std::int64_t batch_size,
                                    const AssumedDevices& devices) {
  std::vector<LayerCosts> costs;
  for (const LayerSizes& layer : layers) {
    LayerCosts& of_layer = costs.emplace_back();
    of_layer.data = all_reduce(layer.parameters, devices);
    split_the_faster_way(layer, batch_size, devices, of_layer);
  }
  if (devices.flops_per_second) hide_behind_backward_pass(layers, *devices.flops_per_second, costs);
  for (LayerCosts& of_layer : costs) {
    const bool is_faster = of_layer.split && of_layer.split->seconds < waiting_seconds(of_layer);
    of_layer.better = is_faster ? Parallelism::kSplit : Parallelism::kData;
  }
  return costs;
}

std::optional<Traffic> split_traffic(const LayerSizes& layer, DenseSplit by, std::int64_t batch_size,
                                     const AssumedDevices& devices) {
  if (!can_split(layer, by, devices)) return std::nullopt;
  const bool is_by_columns = by == DenseSplit::kColumns;
  const std::int64_t inputs = is_by_columns ? layer.inputs : layer.inputs / devices.count;
  const std::int64_t outputs = is_by_columns ? layer.outputs / devices.count : layer.outputs;
  return exchanges(inputs, outputs, layer.has_input_gradient, batch_size, devices);
}

std::optional<Traffic> split_pair_traffic(const LayerSizes& by_columns, const LayerSizes& by_rows,
                                          std::int64_t batch_size, const AssumedDevices& devices) {
  const bool is_possible =
      can_split(by_columns, DenseSplit::kColumns, devices) && can_split(by_rows, DenseSplit::kRows, devices);
  if (!is_possible) return std::nullopt;
  return exchanges(by_columns.inputs, by_rows.outputs, by_columns.has_input_gradient, batch_size, devices);
}

double waiting_seconds(const LayerCosts& costs) { return costs.data.seconds - costs.hidden_seconds.value_or(0.0); }

}  // namespace arbalest::jobs
