// The ways to train a sparse model, epoch by epoch.
#pragma once

#include <atomic>
#include <cstdint>
#include <memory>
#include <string>

#include "dataflow/input/sparse/sparse_rows.h"
#include "jobs/options/job_options.h"
#include "jobs/run/run_observer.h"
#include "scheduler/sparse/logistic_loss.h"

namespace arbalest::jobs {

struct SparseEpoch {
  bool is_whole = true;    // false: a stop signal ended it early
  bool has_ended = false;  // whether nothing is left to gain
  std::int64_t rows = 0;   // trained
  double loss = 0.0;       // on the training set
  double accuracy = 0.0;   // likewise
  double learning_rate = 0.0;
  SparseProgress progress = {};
  std::string warning = {};  // what the user should know about it; "": nothing
};

class SparseMethod {
 public:
  virtual ~SparseMethod() = default;
  // Trains epoch `number`, from 1. `is_last`: the run ends after it, whatever it finds. `stop_signal` may be null.
  virtual SparseEpoch train(int number, bool is_last, const std::atomic<int>* stop_signal) = 0;
  // Sets the loss, accuracy and progress of the epoch that has just been trained, if train() has not.
  virtual void measure(SparseEpoch& epoch) const { static_cast<void>(epoch); }
  virtual scheduler::LinearModel model() const = 0;
};

// `rows` must outlive the method. The job's learners are its threads.
std::unique_ptr<SparseMethod> make_sparse_method(const JobOptions& job, const dataflow::SparseRows& rows);

// "16 blocks of coordinates, delay at most 2, l1 0.0001", "hogwild: single rows, one shared model"
std::string scheme_text(const SparseOptions& options);

}  // namespace arbalest::jobs
