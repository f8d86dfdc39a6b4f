// The saved weights that a run starts from: matched with the model by name and shape, strictly.
#pragma once

#include <cstddef>
#include <string>
#include <vector>

#include "dataflow/graph.h"
#include "dataflow/parameter_layout.h"
#include "options/parameters/initialize_options.h"
#include "scheduler/scheduler.h"

namespace arbalest::jobs {

struct InitialWeights {
  std::string path;                            // of the file
  std::vector<dataflow::NamedTensor> tensors;  // by the names of the model's parameters; those not fresh
  std::vector<std::string> fresh;              // names of the other parameters
  std::size_t ignored = 0;                     // number of the file's tensors that are not used

  // "120 tensors of r18.safetensors, fresh fc.weight and fc.bias, 22 ignored"
  std::string text() const;
};

// Reads the file of the options. Throws ErrorKind::kCheckpoint with all tensors that do not fit, and what to write into
// the job.
InitialWeights read_initial_weights(const InitializeOptions& options, const dataflow::Graph& graph);

// Sets the model and all learners to these weights. Fresh parameters keep their values. Call before the first
// iteration.
void load_initial_weights(const InitialWeights& weights, scheduler::Scheduler& scheduler);

}  // namespace arbalest::jobs
