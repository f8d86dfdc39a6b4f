// Hogwild on matrix factorization, as a run trains and evaluates it.
#pragma once

#include <memory>
#include <span>
#include <string>
#include <vector>

#include "scheduler/sparse/hogwild_factorization.h"
#include "train/sparse/sparse_methods.h"

namespace arbalest::jobs {

// Makes the method of a job with a graph. make_sparse_method calls it.
std::unique_ptr<SparseMethod> make_factorization_method(const JobOptions& job, const std::string& data_root,
                                                        std::vector<std::string>& warnings);

// Scores of a model on `ratings`: the mean of the squared errors, and its root.
SparseTest score_factorization(const JobOptions& job, const scheduler::FactorizationModel& model,
                               std::span<const scheduler::Rating> ratings);

}  // namespace arbalest::jobs
