#include "jobs/run/parallelism/layer_costs.h"

#include <algorithm>

namespace arbalest::jobs {

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

// Gathers and reduce-scatters of activations and their gradients.
//   elements: of one example, in all of these collectives together
Traffic exchange(std::int64_t collectives, std::int64_t elements, std::int64_t batch_size,
                 const AssumedDevices& devices) {
  const std::int64_t others = devices.count - 1;
  return traffic_of(collectives * others, others * kFloatBytes * batch_size * elements, devices.link);
}

Traffic split(std::int64_t inputs, std::int64_t outputs, bool has_input_gradient, std::int64_t batch_size,
              const AssumedDevices& devices) {
  const std::int64_t of_inputs = has_input_gradient ? 2 : 1;
  return exchange(of_inputs + 2, of_inputs * inputs + 2 * outputs, batch_size, devices);
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
    if (!layer.is_dense || layer.parameters == 0) continue;
    of_layer.split = split(layer.inputs, layer.outputs, layer.has_input_gradient, batch_size, devices);
  }
  if (devices.flops_per_second) hide_behind_backward_pass(layers, *devices.flops_per_second, costs);
  for (LayerCosts& of_layer : costs) {
    const bool is_faster = of_layer.split && of_layer.split->seconds < waiting_seconds(of_layer);
    of_layer.better = is_faster ? Parallelism::kSplit : Parallelism::kData;
  }
  return costs;
}

Traffic split_pair_traffic(const LayerSizes& by_columns, const LayerSizes& by_rows, std::int64_t batch_size,
                           const AssumedDevices& devices) {
  return split(by_columns.inputs, by_rows.outputs, by_columns.has_input_gradient, batch_size, devices);
}

double waiting_seconds(const LayerCosts& costs) { return costs.data.seconds - costs.hidden_seconds.value_or(0.0); }

}  // namespace arbalest::jobs
