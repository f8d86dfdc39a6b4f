// What a job would run, without running it: layers, shapes, parameters, FLOPs, bytes.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "jobs/options/job_options.h"
#include "jobs/run/memory_forecast.h"

namespace arbalest::jobs {

struct LayerRow {
  std::string name;
  std::string kind;
  std::string output;              // shape of one mini-batch, "32x20x24x24"
  std::int64_t parameters = 0;     // that are trained
  std::int64_t forward_flops = 0;  // per mini-batch
  std::int64_t output_bytes = 0;   // in the device's layout, padding included
};

inline constexpr int kMostRatePoints = 11;

struct RatePoint {
  double epoch = 0.0;  // that are done
  float rate = 0.0F;   // of one learner, beside the job's others
};

struct Inspection {
  std::vector<LayerRow> layers;
  std::int64_t batch_size = 0;
  engine::Precision precision = engine::Precision::kFloat32;
  std::int64_t parameters = 0;
  std::int64_t forward_flops = 0;   // per mini-batch
  std::int64_t training_flops = 0;  // per mini-batch: forward, and both gradients of each layer that has them
  std::int64_t weight_bytes = 0;    // one flat vector in the device's layout
  std::int64_t arena_bytes = 0;     // activations, gradients, workspaces of a training step, with reuse
  std::int64_t arena_bytes_without_reuse = 0;  // a buffer for each layer's output and its gradient, and nothing else
  std::int64_t learner_bytes = 0;              // all that a learner of the first device takes
  std::int64_t dataset_bytes = 0;              // of host memory
  std::int64_t device_bytes = 0;               // of the first device's memory, all that is not a learner's
  std::int64_t available_bytes = 0;            // of the first device's memory
  int learners_that_fit = 0;                   // on each device, at most kMostLearners
  std::vector<int> learners_per_device;        // of the job
  std::vector<MemoryUse> memory;               // with those
  std::vector<int> most_learners_per_device;  // that the job may have while it runs, as far as memory is known to allow
  std::vector<MemoryUse> most_memory;         // with those
  std::string schedule;                       // of the learning rate: "one_cycle"
  std::vector<RatePoint> learning_rates;      // from the first epoch to the end, at most kMostRatePoints
  // On GPUs: which algorithm each pass of a convolution has been given, and which failed before it.
  std::vector<std::string> kernels;
  std::vector<std::string> warnings;  // to be shown to the user
};

Inspection inspect(const JobOptions& job);

}  // namespace arbalest::jobs
