// Describes what a job would run, without running it: layers, shapes, parameters, FLOPs, bytes.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "options/job_options.h"
#include "train/data/class_table.h"
#include "train/run_plan.h"
#include "train/session/memory_estimate.h"

namespace arbalest::jobs {

struct LayerRow {
  std::string name;
  std::string kind;
  std::string output;              // shape of one mini-batch, "32x20x24x24"
  std::int64_t parameters = 0;     // trainable ones
  std::int64_t forward_flops = 0;  // per mini-batch
  std::int64_t output_bytes = 0;   // in the device's layout, padding included
};

struct KernelRow {
  std::string device;  // its name
  engine::KernelChoice choice;
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
  // A buffer for each layer's output and one for its gradient, and nothing else.
  std::int64_t arena_bytes_without_reuse = 0;
  // All memory of one learner on the first device, with its part of what its team takes.
  std::int64_t learner_bytes = 0;
  std::int64_t dataset_bytes = 0;    // in host memory
  std::int64_t device_bytes = 0;     // in the first device's memory, without learners
  std::int64_t available_bytes = 0;  // of the first device's memory
  int learners_that_fit = 0;         // MemoryEstimate::learners_that_fit()
  int team = 1;                      // learners of a team on a GPU, at most
  bool teams_vary = false;           // whether the size of teams changes with the number of learners
  std::vector<std::string>
      layers_in_turn;                    // why the engine chooses no teams: libraries compute these learner by learner
  int team_that_fits = 1;                // learners of a team, if learners_that_fit train
  bool is_split = false;                 // the model is divided over the devices, each of which has one learner
  std::vector<int> learners_per_device;  // as the job says
  std::vector<MemoryUse> memory;         // with these learners
  // Largest numbers of learners that the job may have while it runs, as far as memory is known to allow.
  std::vector<int> most_learners_per_device;
  std::vector<MemoryUse> most_memory;  // with most_learners_per_device
  std::string schedule;                // kind of learning-rate schedule: "one_cycle"
  std::string schedule_note;           // what `plan` cannot tell about the schedule; "" if it tells all
  std::vector<PlanRow> plan;
  // On GPUs: the kernels that each layer, and each pass of a convolution by cuDNN, got, and what failed before.
  std::vector<KernelRow> kernels;
  bool kernels_are_timed = false;     // false: by the rule
  ClassTable classes;                 // empty: nobody has looked for the data
  std::vector<std::string> warnings;  // to show to the user
};

// kTimed: GPUs time their candidates of kernels, as they do when a run begins. The job's own choice does not matter.
Inspection inspect(const JobOptions& job, engine::KernelSelection kernels = engine::KernelSelection::kFixed);

}  // namespace arbalest::jobs
