// The ways to train a model without mini-batches (JobOptions::sparse), epoch by epoch.
#pragma once

#include <atomic>
#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "dataflow/parameter_layout.h"
#include "options/job_options.h"
#include "saved_model/model_description.h"
#include "scheduler/sparse/proximal_solver.h"
#include "train/context/run_observer.h"

namespace arbalest::jobs {

struct SparseEpoch {
  bool is_whole = true;    // false: a stop signal ended it early
  bool has_ended = false;  // whether nothing is left to gain
  std::int64_t rows = 0;   // trained
  Scores scores = {};      // on the training set
  double learning_rate = 0.0;
  SparseProgress progress = {};
  std::string warning = {};  // what the user should know about it; "": nothing
};

// Scores of the model on the test set.
struct SparseTest {
  Scores scores;
  std::int64_t rows = 0;
};

// A run tells these facts about itself at its start.
struct SparseFacts {
  std::string model;  // "logistic regression, 123 features and a bias"
  std::string data;   // "a9a: 32,561 training rows with 451,592 numbers and 16,281 test rows"
  std::string scheme;
  std::string advice;  // against divergence
};

class SparseMethod {
 public:
  virtual ~SparseMethod() = default;
  virtual SparseFacts facts() const = 0;
  virtual std::int64_t rows() const = 0;  // of the training set
  // Trains epoch `number`, from 1. `is_last`: the run ends after it, whatever it finds. `stop_signal` may be null. All
  // processes call it, and get the same result.
  virtual SparseEpoch train(int number, bool is_last, const std::atomic<int>* stop_signal) = 0;
  // Sets the scores and the progress of the epoch that has just been trained, if train() has not.
  virtual void measure(SparseEpoch& epoch) const { static_cast<void>(epoch); }
  // Rank 0 alone calls it, because it has the test set.
  virtual SparseTest test() const = 0;
  // Returns a checksum of the training set. Only methods that several processes can run need one.
  virtual std::string digest() const { return ""; }
  // The model as it is saved, and its description.
  virtual std::vector<dataflow::NamedTensor> tensors() const = 0;
  virtual Metadata description() const = 0;
};

// Loads the data and makes the method that the job names. The job must outlive it; its learners are the threads, and
// `share` is their place among those of all processes. Rank 0 alone reads the test set. Adds what the user should know
// about the data to `warnings`. Throws ErrorKind::kData.
std::unique_ptr<SparseMethod> make_sparse_method(const JobOptions& job, const std::string& data_root,
                                                 const scheduler::ProximalShare& share,
                                                 std::vector<std::string>& warnings);

// The cores of each learner's thread; empty: it floats over all cores.
std::vector<std::vector<int>> cores_of_learners(const JobOptions& job);

}  // namespace arbalest::jobs
