// The bytes and seconds that training of a layer needs between devices: once with the whole layer on every device, and
// once with the layer split over the devices. This is arithmetic only; docs/parallelism.md explains it.
//
// P devices have b examples of the mini-batch each. A layer has n inputs and m outputs for an example, and N trained
// parameters. Every number is a float32. Before and behind the layer each device has its own b examples.
//
//   data-parallel      all-reduce of the gradient:                             2 (P - 1) / P x 4 N bytes
//   split              all-gather of the inputs, P b x n                       (P - 1) x 4 b n
//                      all-gather or reduce-scatter of the outputs, P b x m    (P - 1) x 4 b m
//                      all-gather of the outputs' gradient                     (P - 1) x 4 b m
//                      reduce-scatter or all-gather of the inputs' gradient    (P - 1) x 4 b n
//
// These are the bytes that a device sends for a mini-batch. A layer whose weights are split by columns gathers outputs
// and reduces the inputs' gradient. With a split by rows it is the other way round, and as many bytes. So splitting
// sends less if P b (n + m) < N. The first layer needs no gradient of its inputs.
//
// If one layer is split by columns and the next by rows, each device keeps its columns of the values between them: that
// pair sends the first layer's inputs and the second layer's outputs only.
//
// A gather or a reduce-scatter takes P - 1 messages around a ring, and an all-reduce is one of each (Thakur,
// Rabenseifner and Gropp, "Optimization of Collective Communication Operations in MPICH", 2005):
//
//   seconds = messages x latency + bytes / speed
#pragma once

#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "jobs/run/parallelism/speeds.h"

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

enum class Parallelism { kData, kSplit };

struct LayerCosts {
  Traffic data;
  // The part of data.seconds in which the devices still compute the gradients of earlier layers. Known only with a
  // compute speed. Split layers hide nothing, because the next layer needs what they send.
  std::optional<double> hidden_seconds;
  std::optional<Traffic> split;             // none: the layer cannot be split
  std::optional<double> compute_seconds;    // forward and backward, the same for both
  Parallelism better = Parallelism::kData;  // the one that keeps the devices waiting for less time
};

// Returns the costs by layer. `layers`: all layers of the model in the order of the forward pass, because a gradient is
// sent while the gradients of earlier layers are computed. A layer without parameters sends nothing.
std::vector<LayerCosts> layer_costs(std::span<const LayerSizes> layers, std::int64_t batch_size,
                                    const AssumedDevices& devices);

// Returns the traffic of two dense layers, of which the first is split by columns and the second by rows.
Traffic split_pair_traffic(const LayerSizes& by_columns, const LayerSizes& by_rows, std::int64_t batch_size,
                           const AssumedDevices& devices);

// Returns the time for which the devices wait for data-parallel traffic.
double waiting_seconds(const LayerCosts& costs);

}  // namespace arbalest::jobs
