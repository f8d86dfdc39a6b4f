// The ratings and the weights of matrix factorization that is trained by Hogwild. Its files are those of the model of
// layers model { zoo { matrix_factorization {} } }, so every command on a saved model reads them.
#pragma once

#include <string>
#include <vector>

#include "dataflow/input/dataset.h"
#include "dataflow/parameter_layout.h"
#include "options/job_options.h"
#include "scheduler/sparse/hogwild_factorization.h"

namespace arbalest::jobs {

// Throws ErrorKind::kData as load_dataset does, and if there is no rating.
std::vector<scheduler::Rating> load_rating_list(const JobOptions& job, const std::string& data_root,
                                                dataflow::Split split, std::vector<std::string>& warnings);

// The values that the graph's parameters have at the start of any run with the job's seed, in their order.
std::vector<dataflow::NamedTensor> initial_tensors(const JobOptions& job);

scheduler::FactorizationModel to_model(const std::vector<dataflow::NamedTensor>& tensors);
std::vector<dataflow::NamedTensor> to_tensors(const JobOptions& job, const scheduler::FactorizationModel& model);

}  // namespace arbalest::jobs
