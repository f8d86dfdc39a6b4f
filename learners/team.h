// A team: learners whose replicas train side by side on one stream. Each task of a training step is enqueued once, for
// all of them (engine/replica_memory.h). A learner that trains alone is a team of one.
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <span>
#include <vector>

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

  // A training step of all learners is a call of gradient() followed by one of update(). Both enqueue on stream() and
  // return without waiting.
  //
  // A step reuses the host memory of the one enqueued result_slots steps earlier. The tickets of that step must have
  // been waited for and read (kInternal if it is still under way). The batches' tensors, if they bring them, must stay
  // until Ticket::done.
  //
  // batches, tickets: one for each learner. The parameters are those of all; each learner gets its own task number.
  // parts: empty, or one event per part of gradient_parts(); each is set to the event after which that part of all
  // gradients is final.
  void gradient(std::span<const dataflow::Batch> batches, const engine::StepParameters& parameters,
                std::span<Ticket> tickets, std::span<engine::Event> parts = {});
  // Applies the gradients once `after` has passed; the update sources must be readable then. Sets the tickets' `done`.
  void update(std::span<Ticket> tickets, const engine::Event& after);
  std::span<const dataflow::GradientPart> gradient_parts() const noexcept { return gradient_parts_; }

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
  // The memory of replica 0.
  dataflow::PlanBuffers buffers() const;
  engine::StepResult* result() const { return result_.of<engine::StepResult>(0); }
  void record_gradient();
  std::unique_ptr<engine::TaskGraph> record_update();
  std::unique_ptr<engine::TaskGraph> record_push();
  std::unique_ptr<engine::TaskGraph> record_shared_copy();
  // Enqueues what computes the clipping factor of `gradient`, and returns its address; null without clipping.
  const float* enqueue_clip(const float* gradient);
  void copy_in(std::span<const dataflow::Batch> batches, const engine::StepParameters& parameters);
  void finish(std::span<Ticket> tickets);

  // The slot of the step that is being enqueued.
  std::size_t slot() const { return steps_ % done_.size(); }

  const LearnerOptions options_;
  const dataflow::Plan& training_;
  ReplicaSlabs replicas_;
  Slab arena_;  // large enough for either plan
  // StepParameters and the indices of a mini-batch, at the address that the recordings read. Evaluation has larger ones
  // of its own, so that one copy takes those of a team.
  Slab step_;
  Slab task_step_;                    // of the learners' own tasks
  Slab result_;                       // StepResult, at the address that the recordings write
  engine::ReplicaMemory memory_;      // all of these
  engine::Buffer step_ring_;          // host: [result_slots, learners, step_.stride()]
  engine::Buffer result_ring_;        // host: [result_slots, learners, result_.stride()]
  std::vector<engine::Event> done_;   // [result_slots] last step in each slot
  std::uint64_t steps_ = 0;           // enqueued so far
  std::unique_ptr<GradientSum> sum_;  // null: gradients are not summed
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
  // Last members: the stream's work must end before what it uses is destroyed, and the learners enqueue on the stream.
  std::vector<std::unique_ptr<Learner>> learners_;
  std::unique_ptr<engine::Stream> stream_;
};

}  // namespace arbalest::learners
