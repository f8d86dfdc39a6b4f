// Takes the results of enqueued work, and checks them: numbers that are not finite, spikes of the loss, copies of the
// model that differ between devices.
#pragma once

#include <cstdint>
#include <mutex>
#include <optional>
#include <string>

#include "scheduler/replicas/diverged.h"
#include "scheduler/replicas/loss_watch.h"
#include "scheduler/replicas/progress.h"
#include "scheduler/replicas/replicas.h"
#include "scheduler/replicas/training_clock.h"
#include "sma/central_model.h"
#include "sma/copy_comparison.h"
#include "sma/options.h"

namespace arbalest::scheduler {

class Results {
 public:
  // `spike`: what counts as a spike of the training loss; none: nothing does. Clock and replicas must outlive it.
  Results(const std::optional<SpikeRule>& spike, const TrainingClock& clock, Replicas& replicas);

  // Sets the scheme whose advice divergence_remedy() returns.
  void set_scheme(const sma::Options& scheme) { scheme_ = scheme; }
  // The advice of the scheme to a run that has diverged (sma::divergence_remedy).
  std::string divergence_remedy() const;

  // These block the host until the work has ended, add its results to `progress`, and report a divergence.
  void take(const Task& task, Progress& progress);
  void take_averaging(const sma::AveragingTicket& averaging, Progress& progress);
  // Reports that a server has refused the push of `learner`, such as "learner 3 on cpu", which ended with a mini-batch:
  // `refused` of its elements are not finite.
  void report_refused(const std::string& learner, std::uint64_t mini_batch, std::int32_t refused);

  // Checks the hashes of the devices' copies at the end of a round. Throws kDevice if the copies differ, unless a
  // process has found a divergence. A call of World's operations.
  void check_copies(const sma::CopyHashes& hashes, std::uint64_t round, std::uint64_t batches);

  // One process throws a divergence. One of several keeps it, and goes on.
  bool has_divergence() const;
  std::optional<Diverged> take_divergence();

  // A saved run keeps these, because later checks depend on them.
  LossHistory losses() const { return loss_watch_ ? loss_watch_->history() : LossHistory{}; }
  void continue_from(const LossHistory& losses);

 private:
  void report(const Diverged& divergence);
  void check_finite(const Task& task);
  void watch_loss(const Task& task);

  const TrainingClock& clock_;
  Replicas& replicas_;
  sma::Options scheme_;
  std::optional<LossWatch> loss_watch_;
  std::uint64_t equal_at_ = 0;           // mini-batches at the last point where the devices' copies were equal
  mutable std::mutex divergence_mutex_;  // the thread of a ShardedPushes may find one
  std::optional<Diverged> divergence_;   // found but not taken
};

}  // namespace arbalest::scheduler
