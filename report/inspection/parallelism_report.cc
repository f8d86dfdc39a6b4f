#include "report/inspection/parallelism_report.h"

#include <vector>

#include <fmt/format.h>

#include "messages/text.h"

namespace arbalest::jobs {

using dataflow::DenseSplit;

namespace {

using Row = std::vector<std::string>;

constexpr double kMilli = 1e-3;
constexpr double kMicro = 1e-6;
constexpr double kGiga = 1e9;

std::string milliseconds(double seconds) { return fmt::format("{:.3f}", seconds / kMilli); }

// "5 us", "20 ms"
std::string latency_text(double seconds) {
  return seconds < kMilli ? fmt::format("{:g} us", seconds / kMicro) : fmt::format("{:g} ms", seconds / kMilli);
}

const char* text_of(Parallelism parallelism) {
  if (parallelism == Parallelism::kEachAlone) return "each alone";
  return parallelism == Parallelism::kSplit ? "split" : "data-parallel";
}

const char* text_of(DenseSplit split) { return split == DenseSplit::kColumns ? "columns" : "rows"; }

std::string description(const ParallelismCosts& costs) {
  const Link& link = costs.devices.link;
  std::string text =
      fmt::format("{} with {} each; a device sends {:g} GB/s, and a message takes {} longer than its bytes",
                  counted(costs.devices.count, "device"), counted(costs.batch_size, "example"),
                  link.bytes_per_second / kGiga, latency_text(link.latency_seconds));
  if (costs.devices.flops_per_second) {
    text += fmt::format(";\na device computes {:g} GFLOP/s", *costs.devices.flops_per_second / kGiga);
  }
  return text + ".\n";
}

std::string layers_table(const ParallelismCosts& costs) {
  const bool has_compute = costs.devices.flops_per_second.has_value();
  std::vector<Row> rows = {{"layer", "kind", "inputs", "outputs", "parameters", "data-parallel bytes", "ms"}};
  if (has_compute) rows[0].insert(rows[0].end(), {"hidden ms", "compute ms"});
  rows[0].insert(rows[0].end(), {"split by", "split bytes", "split ms", "better"});
  for (const LayerParallelism& layer : costs.layers) {
    const LayerSizes& sizes = layer.sizes;
    const LayerCosts& of_layer = layer.costs;
    Row& row = rows.emplace_back(Row{sizes.name, sizes.kind, grouped(sizes.inputs), grouped(sizes.outputs),
                                     grouped(sizes.parameters), grouped(of_layer.data.bytes),
                                     milliseconds(of_layer.data.seconds)});
    if (has_compute) {
      row.insert(row.end(), {milliseconds(*of_layer.hidden_seconds), milliseconds(*of_layer.compute_seconds)});
    }
    row.emplace_back(of_layer.split ? text_of(of_layer.split_by) : "-");
    row.push_back(of_layer.split ? grouped(of_layer.split->bytes) : "-");
    row.push_back(of_layer.split ? milliseconds(of_layer.split->seconds) : "-");
    row.emplace_back(text_of(of_layer.better));
  }
  return table(rows, 2);
}

std::string pairs_table(const ParallelismCosts& costs) {
  if (costs.pairs.empty()) return "";
  std::vector<Row> rows = {
      {"split by columns", "then by rows", "data-parallel bytes", "ms", "split bytes", "split ms", "better"}};
  for (const PairParallelism& pair : costs.pairs) {
    rows.push_back({pair.by_columns, pair.by_rows, grouped(pair.data.bytes), milliseconds(pair.data.seconds),
                    grouped(pair.split.bytes), milliseconds(pair.split.seconds), text_of(pair.better)});
  }
  return "\nTwo dense layers in a row, which keep the columns between them where they are:\n" + table(rows, 2);
}

std::string total_text(const char* name, const TotalTraffic& total, bool has_compute) {
  const std::string waiting =
      has_compute ? fmt::format(", of which the devices wait for {} ms", milliseconds(total.waiting_seconds)) : "";
  return fmt::format("{}: {} bytes in {} ms{}\n", name, grouped(total.traffic.bytes),
                     milliseconds(total.traffic.seconds), waiting);
}

nlohmann::ordered_json json_of(const Traffic& traffic) {
  return {{"bytes", traffic.bytes}, {"seconds", traffic.seconds}};
}

nlohmann::ordered_json json_of(const TotalTraffic& total) {
  nlohmann::ordered_json json = json_of(total.traffic);
  json["waiting_seconds"] = total.waiting_seconds;
  return json;
}

template <typename Value>
nlohmann::ordered_json json_of(const std::optional<Value>& value) {
  return value ? nlohmann::ordered_json(*value) : nlohmann::ordered_json(nullptr);
}

const char* json_of(Parallelism parallelism) {
  if (parallelism == Parallelism::kEachAlone) return "each_alone";
  return parallelism == Parallelism::kSplit ? "split" : "data_parallel";
}

nlohmann::ordered_json split_json(const LayerCosts& costs) {
  if (!costs.split) return nullptr;
  nlohmann::ordered_json json = json_of(*costs.split);
  json["by"] = text_of(costs.split_by);
  return json;
}

nlohmann::ordered_json json_of(const LayerParallelism& layer) {
  const LayerSizes& sizes = layer.sizes;
  nlohmann::ordered_json data = json_of(layer.costs.data);
  data["hidden_seconds"] = json_of(layer.costs.hidden_seconds);
  return {{"name", sizes.name},
          {"kind", sizes.kind},
          {"inputs", sizes.inputs},
          {"outputs", sizes.outputs},
          {"parameters", sizes.parameters},
          {"compute_seconds", json_of(layer.costs.compute_seconds)},
          {"data_parallel", data},
          {"split", split_json(layer.costs)},
          {"better", json_of(layer.costs.better)}};
}

nlohmann::ordered_json json_of(const PairParallelism& pair) {
  return {{"split_by_columns", pair.by_columns},
          {"split_by_rows", pair.by_rows},
          {"data_parallel", json_of(TotalTraffic{pair.data, pair.waiting_seconds})},
          {"split", json_of(pair.split)},
          {"better", json_of(pair.better)}};
}

}  // namespace

std::string to_text(const ParallelismCosts& costs) {
  const bool has_compute = costs.devices.flops_per_second.has_value();
  return fmt::format("{}\n{}{}\nEach device sends for a mini-batch, as float32:\n{}{}", description(costs),
                     layers_table(costs), pairs_table(costs),
                     total_text("  all layers data-parallel", costs.data_parallel, has_compute),
                     total_text("  each layer or pair the better way", costs.each_the_better, has_compute));
}

nlohmann::ordered_json to_json(const ParallelismCosts& costs) {
  auto layers = nlohmann::ordered_json::array();
  for (const LayerParallelism& layer : costs.layers) layers.push_back(json_of(layer));
  auto pairs = nlohmann::ordered_json::array();
  for (const PairParallelism& pair : costs.pairs) pairs.push_back(json_of(pair));
  const Link& link = costs.devices.link;
  return {{"devices", costs.devices.count},
          {"batch_size", costs.batch_size},
          {"link", {{"bytes_per_second", link.bytes_per_second}, {"latency_seconds", link.latency_seconds}}},
          {"flops_per_second", json_of(costs.devices.flops_per_second)},
          {"layers", layers},
          {"pairs", pairs},
          {"data_parallel", json_of(costs.data_parallel)},
          {"each_the_better", json_of(costs.each_the_better)}};
}

}  // namespace arbalest::jobs
