// The bytes and seconds that training of a layer needs between devices: once with the whole layer on every device, and
// once with the layer split over the devices. This is arithmetic only; docs/parallelism.md explains it.
//
// P devices have b examples of the mini-batch each. A layer has n inputs and m outputs for an example, and N trained
// parameters. Every number is a float32. Before and behind the layer each device has its own b examples.
//
//   data-parallel      all-reduce of the gradient:                             2 (P - 1) / P x 4 N bytes
//   split by columns   all-gather of the inputs, P b x n                       (P - 1) x 4 b n
//                      all-to-all of the outputs, from columns to examples     (P - 1) x 4 b m / P
//                      all-to-all of their gradient, from examples to columns  (P - 1) x 4 b m / P
//                      reduce-scatter of the inputs' gradient                  (P - 1) x 4 b n
//   split by rows      all-to-all of the inputs, from examples to columns      (P - 1) x 4 b n / P
//                      reduce-scatter of the outputs                           (P - 1) x 4 b m
//                      all-gather of their gradient                            (P - 1) x 4 b m
//                      all-to-all of the inputs' gradient, back to examples    (P - 1) x 4 b n / P
//
// These are the bytes that a device sends for a mini-batch, with the exchanges of dataflow/split/split_graph.cc. Rows
// send less if m < n. Splitting sends less than data-parallel training if b (max(n, m) + P min(n, m)) < N. The first
// layer needs no gradient of its inputs. P must divide m for a split by columns, and n for a split by rows.
//
// If one layer is split by columns and the next by rows, each device keeps its columns of the values between them: that
// pair gathers the first layer's inputs, adds the second layer's outputs, and takes the same way back.
//
// A gather or a reduce-scatter takes P - 1 messages around a ring, and an all-reduce is one of each (Thakur,
// Rabenseifner and Gropp, "Optimization of Collective Communication Operations in MPICH", 2005). An all-to-all takes
// one message to each other device:
//
//   seconds = messages x latency + bytes / speed
#pragma once

#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "dataflow/layers/dense.h"
#include "train/parallelism/speeds.h"

namespace arbalest::jobs {

struct AssumedDevices {
  int count = 2;  // P, at least 2
  Link link;
  std::optional<double> flops_per_second = {};  // of a device
};

struct LayerSizes {
  std::string name;
  std::string kind;
  std::int64_t inputs = 0;      // n
  std::int64_t outputs = 0;     // m
  std::int64_t parameters = 0;  // N: those that training changes
  bool is_dense = false;        // only a dense layer can be split
  bool has_input_gradient = true;
  std::int64_t forward_flops = 0;  // for the mini-batch of a device
  std::int64_t backward_flops = 0;
};

struct Traffic {
  std::int64_t bytes = 0;  // sent by each device for a mini-batch
  double seconds = 0.0;
};

enum class Parallelism {
  kData,
  kSplit,
  kEachAlone  // for two layers: each the way that is better for it alone, at least one of them split
};

struct LayerCosts {
  Traffic data;
  // The part of data.seconds in which the devices still compute the gradients of earlier layers. Known only with a
  // compute speed. Split layers hide nothing, because the next layer needs what they send.
  std::optional<double> hidden_seconds;
  std::optional<Traffic> split;                                 // by the faster way; none: the layer cannot be split
  dataflow::DenseSplit split_by = dataflow::DenseSplit::kNone;  // the faster way
  std::optional<double> compute_seconds;                        // forward and backward, the same for both
  Parallelism better = Parallelism::kData;                      // the one that keeps the devices waiting for less time
};

// Returns the costs by layer. `layers`: all layers of the model in the order of the forward pass, because a gradient is
// sent while the gradients of earlier layers are computed. A layer without parameters sends nothing.
std::vector<LayerCosts> layer_costs(std::span<const LayerSizes> layers, std::int64_t batch_size,
                                    const AssumedDevices& devices);

// Returns the traffic of a layer that is split alone; none if it cannot be split in this way.
std::optional<Traffic> split_traffic(const LayerSizes& layer, dataflow::DenseSplit by, std::int64_t batch_size,
                                     const AssumedDevices& devices);

// Returns the traffic of two dense layers, of which the first is split by columns and the second by rows; none if the
// devices do not divide the values between them.
std::optional<Traffic> split_pair_traffic(const LayerSizes& by_columns, const LayerSizes& by_rows,
                                          std::int64_t batch_size, const AssumedDevices& devices);

// Returns the time for which the devices wait for data-parallel traffic.
double waiting_seconds(const LayerCosts& costs);

}  // namespace arbalest::jobs
