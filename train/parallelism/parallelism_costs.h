// Tells for each layer of a job whether several devices should train it data-parallel or split it.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "dataflow/graph.h"
#include "options/job_options.h"
#include "train/parallelism/layer_costs.h"

namespace arbalest::jobs {

struct LayerParallelism {
  LayerSizes sizes;
  LayerCosts costs;
};

// Two dense layers with nothing but elementwise layers between them. The first would be split by columns, the second by
// rows.
struct PairParallelism {
  std::string by_columns;
  std::string by_rows;
  Traffic data;  // of both layers
  double waiting_seconds = 0.0;
  Traffic split;
  Parallelism better = Parallelism::kData;
};

struct TotalTraffic {
  Traffic traffic;
  double waiting_seconds = 0.0;  // of the devices, for this traffic
};

struct ParallelismCosts {
  AssumedDevices devices;
  std::int64_t batch_size = 0;           // of a device
  std::vector<LayerParallelism> layers;  // those that training changes, in the order of the forward pass
  std::vector<PairParallelism> pairs;
  TotalTraffic data_parallel;    // all layers data-parallel
  TotalTraffic each_the_better;  // each layer, or pair of layers, the way that keeps the devices waiting for less time
};

// Returns the sizes of all layers for a mini-batch of `batch_size`.
std::vector<LayerSizes> layer_sizes(const dataflow::Graph& graph, std::int64_t batch_size);

ParallelismCosts parallelism_costs(const JobOptions& job, const AssumedDevices& devices);

// The costs are those of s_sgd. Returns a warning if the job also trains by another scheme; else "".
std::string scheme_warning(const JobOptions& job);

}  // namespace arbalest::jobs
