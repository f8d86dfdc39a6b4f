// Everything that changes while a job runs; JobOptions stay as they were read. The Trainer owns the state. A checkpoint
// holds it.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "engine/kernel_choices.h"
#include "options/job_options.h"
#include "scheduler/replicas/training_state.h"
#include "scheduler/scheduler.h"

namespace arbalest::jobs {

// Earlier evaluations, as far as the stop rule and the report need them.
struct ScoreHistory {
  std::vector<double> recent;             // accuracies that AccuracyTarget compares with the target, oldest first
  std::optional<double> best_test;        // an accuracy or an RMSE, at the end of an epoch
  std::optional<double> best_validation;  // likewise
  std::optional<double> improved;         // the score of the last improvement that training.patience_epochs counts from
  int epochs_since = 0;                   // epochs since then
};

// The state of the learning rate's plateau schedule.
struct PlateauState {
  double factor = 1.0;              // product of all drops
  int drops = 0;                    // number of drops
  std::optional<double> best = {};  // score of the last improvement
  int bad_epochs = 0;               // epochs since then
  int cooldown = 0;                 // epochs that are not judged
};

// Counts how often the run has gone back to a checkpoint because training had diverged.
struct RollbackState {
  int count = 0;
  double factor = 1.0;                         // of the learning rate, for all of them
  std::optional<std::uint64_t> to_batch = {};  // mini-batches of the checkpoint that it went back to last
  std::uint64_t point = 0;                     // mini-batches of the newest roll-back point; 0: the run's start
};

// Tells best.safetensors from the best model of another point of the run.
struct BestModel {
  double score = 0.0;         // of the set by which the run is judged
  std::uint64_t batches = 0;  // mini-batches trained before it
  std::string sha256 = {};    // of the file; "" if it is not known, as in checkpoints of earlier versions

  // Whether both are the model of the same point.
  friend bool operator==(const BestModel& a, const BestModel& b) {
    return a.score == b.score && a.batches == b.batches;
  }
};

struct RunState {
  std::vector<int> learners_per_device;
  int team = 0;                        // learners of a team, at most, if the run searches it; else 0
  std::size_t switches_done = 0;       // of JobOptions::switches
  int unused_switches = 0;             // those of them under whose scheme no round was trained
  std::size_t learner_steps_done = 0;  // of JobOptions::schedule, the start included
  std::vector<LearnerStep> learners;   // every number of learners that the run has had
  int epochs = 0;                      // epochs that ended and were evaluated

  scheduler::Progress epoch;   // results of the epoch under way
  double epoch_seconds = 0.0;  // of training in the epoch under way, at the time of a checkpoint

  // Totals over the ended epochs.
  std::int64_t examples = 0;
  sma::StalenessCounts staleness;
  double training_seconds = 0.0;
  // These are of earlier processes of the run, or, in a checkpoint, of the whole run.
  double elapsed_seconds = 0.0;
  std::int64_t skipped_examples = 0;
  std::string first_skipped;

  // Tell whether the run has learned anything: mean training losses of the untrained model, and of the last epoch that
  // ended. None: not known, as in the checkpoints of older programs.
  std::optional<double> untrained_loss;
  std::optional<double> epoch_loss;

  ScoreHistory scores;
  PlateauState plateau;
  RollbackState rollbacks;
  std::optional<double> time_to_accuracy_seconds;
  std::optional<double> recent_seconds;  // of the run, at the last of ScoreHistory::recent
  std::optional<double> present_score;   // of the model at this point, if it was just evaluated at the end of an epoch

  std::optional<BestModel> best_model;  // best.safetensors; none: there is no such file

  std::uint64_t metrics_bytes = 0;  // length of metrics.jsonl

  std::vector<engine::KernelChoice> kernels;  // of the run's GPUs; those of the first answer for all
};

}  // namespace arbalest::jobs
