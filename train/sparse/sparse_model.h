// The files of a sparse model: its rows, and the weights that a run saves.
#pragma once

#include <string>
#include <vector>

#include "dataflow/input/sparse/sparse_rows.h"
#include "dataflow/parameter_layout.h"
#include "options/job_options.h"
#include "saved_model/model_description.h"
#include "scheduler/sparse/logistic_loss.h"

namespace arbalest::jobs {

enum class SparseSplit { kTrain, kTest };

// Throws as dataflow::load_libsvm; also ErrorKind::kData if a training set has one class only.
dataflow::SparseRows load_sparse_rows(const SparseOptions& options, const std::string& data_root, SparseSplit split);

// A checksum of all numbers and labels.
std::string digest_of(const dataflow::SparseRows& rows);

// The tensors "weight" [1, features] and, if the model has one, "bias" [1].
std::vector<dataflow::NamedTensor> to_tensors(const scheduler::LinearModel& model, bool bias);
Metadata describe_sparse_model(const JobOptions& job);

// Reads them back. Throws ErrorKind::kCheckpoint if the file is unusable, its tensors are others than the job's, or its
// SHA-256 differs from `sha256` ("": not checked).
scheduler::LinearModel read_sparse_model(const JobOptions& job, const std::string& path, const std::string& sha256);

}  // namespace arbalest::jobs
