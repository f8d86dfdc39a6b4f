// A team: learners whose replicas train and evaluate side by side on one stream. Each task is enqueued once, for all of
// them (engine/replica_memory.h). A learner that trains alone is a team of one.
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <span>
#include <vector>

#include "dataflow/memory/plan.h"
#include "learners/gradient_sum.h"
#include "learners/learner.h"
#include "learners/slab.h"

namespace arbalest::learners {

// Options that differ between the teams of a device, and the memory that all learners share.
struct TeamPlace {
  int number = 0;      // of the team's first learner on its device
  int size = 1;        // learners; more than one only if Device::takes_teams()
  int first_core = 0;  // number of its first core within the device
  int threads = 1;
  SharedVectors shared = {};
};

class Team {
 public:
  // Memory of the device that one learner of a team takes, and that the team takes besides.
  static std::size_t learner_bytes(const dataflow::Plan& training, const dataflow::Plan& inference,
                                   const LearnerOptions& options);
  static std::size_t stream_bytes(const engine::Device& device, int size);

  // Creates the learners and records their training step, with an update that reads their own vectors only. Plans, data
  // and shared vectors must outlive the team. Throws kOutOfMemory.
  Team(engine::Device& device, const dataflow::Plan& training, const dataflow::Plan& inference, const TeamPlace& place,
       const LearnerOptions& options);

  std::span<const std::unique_ptr<Learner>> learners() const noexcept { return learners_; }
  std::size_t size() const noexcept { return learners_.size(); }
  engine::Stream& stream() const noexcept { return *stream_; }

  // Records the update again with these sources. The team must be idle. The sources must outlive it, or last until the
  // next call.
  void set_update_sources(const UpdateSources& sources);

  // Training steps and passes enqueue on stream() and return without waiting. Each of them reuses the host memory of
  // the one enqueued result_slots earlier. The tickets of that one must have been waited for and read (kInternal if it
  // is still under way). The batches' tensors, if they bring them, must stay until Ticket::done.
  //
  // A training step of all learners is a call of gradient() followed by one of update().
  //
  // batches, tickets: one for each learner. The parameters are those of all; each learner gets its own task number.
  // parts: empty, or one event per part of gradient_parts(); each is set to the event after which that part of all
  // gradients is final.
  void gradient(std::span<const dataflow::Batch> batches, const engine::StepParameters& parameters,
                std::span<Ticket> tickets, std::span<engine::Event> parts = {});
  // Applies the gradients once `after` has passed; the update sources must be readable then. Sets the tickets' `done`.
  void update(std::span<Ticket> tickets, const engine::Event& after);
  std::span<const dataflow::GradientPart> gradient_parts() const noexcept { return gradient_parts_; }

  // Passes (team_passes.cc): each replica runs forward over a mini-batch of its own, without a step. There is a ticket
  // for each batch, and a batch for each learner. Fewer will do, but at least one: the other learners repeat the last.
  //
  // Computes loss and metrics of the evaluation weights, after `weights_ready`.
  void evaluate(std::span<const dataflow::Batch> batches, const engine::Event& weights_ready,
                std::span<Ticket> tickets);
  // Computes loss and metrics of the learners' own weights, after their last update. Only if
  // LearnerOptions::evaluates_own_weights.
  void evaluate_own_weights(std::span<const dataflow::Batch> batches, std::span<Ticket> tickets);
  // Computes the loss of the learners' own weights on training mini-batches, as a training step does: with dropout and
  // whatever else training adds. Overwrites what the next step overwrites, and nothing else. The first call records the
  // work.
  void training_loss(std::span<const dataflow::Batch> batches, const engine::StepParameters& parameters,
                     std::span<Ticket> tickets);
  // Runs the forward pass of training on the evaluation weights, after `weights_ready`, to get the batch norm
  // statistics of each mini-batch (engine/ops/batch_norm.h). Overwrites the gradients. Only if
  // LearnerOptions::measures_statistics and the model has running statistics.
  void measure_statistics(std::span<const dataflow::Batch> batches, const engine::StepParameters& parameters,
                          const engine::Event& weights_ready, std::span<Ticket> tickets);

  // With a server, these take the place of the last update() of a push, and begin the next push. Of teams of one only.
  //
  // push() makes pushed(push_every) final: the sum of the gradients since the last pull(), [trainable_elements()]. Sets
  // the ticket's `done`. If push_every is 1 and gradients are clipped, the server must multiply by *gradient_scale(),
  // on the device; otherwise gradient_scale() is null.
  void push(Ticket& ticket);
  const float* pushed(int push_every) const noexcept;
  const float* gradient_scale(int push_every) const noexcept;
  // Copies `weights` ([elements], on any device of the run) to the learner's weights, after `ready`, and begins a new
  // sum of gradients. Returns the event after which `weights` has been read.
  engine::Event pull(const float* weights, const engine::Event& ready);

 private:
  // The memory of replica 0, for tasks with these parameters and indices.
  dataflow::PlanBuffers buffers(const Slab& step) const;
  // The same, for passes on the evaluation weights.
  dataflow::PlanBuffers evaluation_buffers() const;
  engine::StepResult* result() const { return result_.of<engine::StepResult>(0); }
  void record_gradient();
  std::unique_ptr<engine::TaskGraph> record_update();
  std::unique_ptr<engine::TaskGraph> record_push();
  std::unique_ptr<engine::TaskGraph> record_shared_copy();
  bool measures_statistics() const {
    return options_.measures_statistics && training_.parameters().statistic_elements() > 0;
  }
  void record_passes();
  std::unique_ptr<engine::TaskGraph> record_evaluation(dataflow::PlanBuffers buffers);
  std::unique_ptr<engine::TaskGraph> record_training_forward(const dataflow::PlanBuffers& buffers);
  // Enqueues what computes the clipping factor of `gradient`, and returns its address; null without clipping.
  const float* enqueue_clip(const float* gradient);
  // Every training step and every pass begins and ends with these. begin() sets all of the tickets that is known.
  void begin(std::span<const dataflow::Batch> batches, engine::WorkPhase phase, std::span<Ticket> tickets);
  void finish(std::span<Ticket> tickets);
  // Makes `parameters` those of all learners, each with its mini-batch's number.
  void set_parameters(std::span<const dataflow::Batch> batches, const engine::StepParameters& parameters);
  // Copies the mini-batches and, for the training plan, the parameters to the addresses that the recordings read. All
  // but the batches' tensors takes one copy, labeled `label`.
  void copy_in(const dataflow::Plan& plan, const Slab& step, std::span<const dataflow::Batch> batches,
               const char* label);

  // The slot of the task that is being enqueued.
  std::size_t slot() const { return tasks_ % done_.size(); }

  const LearnerOptions options_;
  const dataflow::Plan& training_;
  const dataflow::Plan& inference_;
  const SharedVectors shared_;
  ReplicaSlabs replicas_;
  Slab arena_;  // large enough for either plan
  // StepParameters and the indices of a mini-batch, at the address that the recordings read. Passes have larger ones of
  // their own, so that one copy takes those of a training step.
  Slab step_;
  Slab pass_step_;
  Slab result_;                                     // StepResult, at the address that the recordings write
  engine::ReplicaMemory memory_;                    // all of these
  std::vector<engine::StepParameters> parameters_;  // [learners] of the task that is being enqueued
  engine::Buffer step_ring_;                        // host: [result_slots, learners, pass_step_.stride()]
  engine::Buffer result_ring_;                      // host: [result_slots, learners, result_.stride()]
  engine::Buffer statistics_ring_;                  // host: [result_slots, learners, statistic_elements()]
  std::vector<engine::Event> done_;                 // [result_slots] last task in each slot
  std::uint64_t tasks_ = 0;                         // training steps and passes enqueued so far
  std::unique_ptr<GradientSum> sum_;                // null: gradients are not summed
  std::vector<dataflow::GradientPart> gradient_parts_;
  std::vector<std::unique_ptr<engine::TaskGraph>> gradient_graphs_;  // by part; the first one runs the forward pass
                                                                     // before it
  UpdateSources sources_;
  std::unique_ptr<engine::TaskGraph> update_graph_;  // reads sources_; with a server, the local step
  std::unique_ptr<engine::TaskGraph> push_graph_;    // null: nothing to be done
  // Only learners with shared weights have these: results of their passes, and a ring of staleness, [result_slots].
  std::unique_ptr<engine::TaskGraph> shared_copy_graph_;
  std::uint64_t steps_at_copy_ = 0;
  std::int64_t staleness_ = 0;
  std::vector<std::int64_t> staleness_ring_;
  std::unique_ptr<engine::TaskGraph> evaluation_graph_;
  std::unique_ptr<engine::TaskGraph> own_evaluation_graph_;  // null: own weights are not evaluated
  std::unique_ptr<engine::TaskGraph> statistics_graph_;      // null: statistics are not measured
  std::unique_ptr<engine::TaskGraph> training_loss_graph_;   // null: training_loss() has not been called
  // Last members: the stream's work must end before what it uses is destroyed, and the learners enqueue on the stream.
  std::vector<std::unique_ptr<Learner>> learners_;
  std::unique_ptr<engine::Stream> stream_;
};

}  // namespace arbalest::learners
