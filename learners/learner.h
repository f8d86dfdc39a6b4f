// A replica being trained on a stream of its own, one mini-batch after the other.
#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "dataflow/input/batch_ring.h"
#include "dataflow/input/resident_data.h"
#include "dataflow/plan.h"
#include "engine/device.h"
#include "learners/replica.h"

namespace arbalest::learners {

// What is left to wait for after a mini-batch was enqueued.
struct Ticket {
  std::uint64_t task = 0;                      // number of the mini-batch
  int examples = 0;                            // labeled ones in it
  engine::Event done = {};                     // *result is there
  const engine::StepResult* result = nullptr;  // host memory, valid until result_slots more tasks were enqueued
  // [statistic_elements()] alike, of measure_statistics() only: what running statistics are to move to.
  const float* statistics = nullptr;
};

struct LearnerOptions {
  int number = 0;      // on its device
  int first_core = 0;  // within the device
  int threads = 1;
  int result_slots = 4;  // tasks that may be enqueued and not yet waited for
  engine::UpdateRule rule = {};
  std::optional<float> clip_gradient_norm = {};  // the largest norm that a gradient keeps
  // The backward pass is recorded in parts of about so many bytes of gradient (Plan::gradient_parts); 0: in one.
  std::int64_t gradient_part_bytes = 0;
  // The device's weights that evaluation reads, and the same in low precision where the plans read that.
  float* evaluation_weights = nullptr;
  const engine::BFloat16* rounded_evaluation_weights = nullptr;
  // What gradient() and what evaluate() gather their mini-batches from; null: the batch brings its images.
  const dataflow::ResidentData* training_data = nullptr;
  const dataflow::ResidentData* evaluation_data = nullptr;
  bool measures_statistics = false;    // measure_statistics() will be called
  bool evaluates_own_weights = false;  // evaluate_own_weights() will be called
};

// The vectors that a learner's update reads beside its own, all on its device: [elements of the flat vectors] each.
struct UpdateSources {
  // The update may pull the weights towards one of these (engine/ops/weight_update.h); both null: it does not.
  const float* references[2] = {nullptr, nullptr};
  // The gradient of what is trained; null: the learner's own.
  const float* gradient = nullptr;

  bool operator==(const UpdateSources&) const = default;
};

// The fate of the optimizer's state when a learner is given new weights.
enum class OptimizerState {
  kKeep,
  kZero,  // and AdamW's steps are counted from 1 again
};

class Learner {
 public:
  // What one takes of the device's memory.
  static std::size_t device_bytes(const engine::Device& device, const dataflow::Plan& training,
                                  const dataflow::Plan& inference, const engine::UpdateRule& rule);

  // Records its task graphs, with an update that reads its own vectors only. The plans, data and buffers must outlive
  // it. Throws kOutOfMemory.
  Learner(engine::Device& device, const dataflow::Plan& training, const dataflow::Plan& inference,
          const LearnerOptions& options);

  float* weights() const noexcept { return replica_.weights(); }
  float* gradient() const noexcept { return replica_.gradient(); }
  const std::vector<StateSlot>& state() const noexcept { return replica_.state(); }
  // The weights in low precision; null where the plans do not read them.
  const engine::BFloat16* rounded_weights() const noexcept { return replica_.rounded(); }
  engine::Stream& stream() const noexcept { return *stream_; }

  // Records the update anew. The learner must be idle; the sources must outlive it, or the next call.
  void set_update_sources(const UpdateSources& sources);

  // One training step is a call of gradient() and then one of update(). Stream ordering: they enqueue on stream() and
  // return without waiting. The host memory of the task that was enqueued result_slots earlier is used again, by
  // evaluate() too: its ticket must have been waited for and read (kInternal if it is still under way).
  // The batch's images [b, c, h, w] and labels [b], if it brings them, must stay until Ticket::done.
  // parts: unless empty, as many as gradient_parts() has; each gets the event after which the part's gradient is there.
  Ticket gradient(const dataflow::Batch& batch, const engine::StepParameters& parameters,
                  std::span<engine::Event> parts = {});
  // Applies the gradient after `after` has passed: whatever the update sources wait for. Completes the ticket's `done`.
  void update(Ticket& ticket, const engine::Event& after);
  std::span<const dataflow::GradientPart> gradient_parts() const noexcept { return gradient_parts_; }

  // Loss and accuracy of the evaluation weights on one mini-batch, after `weights_ready`.
  Ticket evaluate(const dataflow::Batch& batch, const engine::Event& weights_ready);

  // Returns loss and accuracy of the learner's own weights, after its last update. Only if
  // LearnerOptions::evaluates_own_weights.
  Ticket evaluate_own_weights(const dataflow::Batch& batch);

  // The forward pass of training on the evaluation weights, after `weights_ready`, for the statistics of its mini-batch
  // (engine/ops/batch_norm.h). Only if LearnerOptions::measures_statistics, and where there are running statistics. It
  // overwrites the gradient.
  Ticket measure_statistics(const dataflow::Batch& batch, const engine::StepParameters& parameters,
                            const engine::Event& weights_ready);

  // To be called when the host has written weights(), before anything is enqueued that reads them. Returns when the
  // host may write them again.
  void weights_were_set();

  // Copies `weights` ([elements] on the device) to its own, after `ready`; returns the event after which they are
  // there.
  engine::Event assign(const float* weights, const engine::Event& ready, OptimizerState state);
  // Copies `values` ([trainable_elements()] on the device) to slot `slot` of the optimizer's state, after `ready`.
  void assign_state(std::size_t slot, const float* values, const engine::Event& ready);

 private:
  std::size_t vector_bytes() const;
  std::size_t state_bytes() const;  // of a vector of the optimizer's
  std::size_t statistics_bytes() const;
  void round_weights(const float* weights, engine::BFloat16* rounded);
  std::unique_ptr<engine::TaskGraph> record_update(const UpdateSources& sources);
  std::unique_ptr<engine::TaskGraph> record_evaluation(const dataflow::PlanBuffers& buffers);
  void enqueue_gather(const dataflow::Plan& plan, const dataflow::ResidentData* data);
  // The mini-batch and, unless null, the parameters to where the recordings read them; what is not images in one copy,
  // labeled `label`.
  void copy_in(const dataflow::Plan& plan, const dataflow::ResidentData* data, const dataflow::Batch& batch,
               const engine::StepParameters* parameters, const char* label);
  Ticket evaluate(const engine::TaskGraph& graph, const dataflow::Batch& batch);
  void check_slot() const;
  void finish(Ticket& ticket);

  // Of the task that is being enqueued.
  std::size_t slot() const { return tasks_ % static_cast<std::uint64_t>(options_.result_slots); }

  LearnerOptions options_;
  const dataflow::Plan& training_;
  const dataflow::Plan& inference_;
  Replica replica_;
  engine::Buffer arena_;             // of the larger plan
  std::size_t step_bytes_;           // of StepParameters and, behind them, the indices of the larger mini-batch
  engine::Buffer step_;              // both, at the recordings' fixed address
  engine::Buffer result_;            // StepResult alike
  engine::Buffer step_ring_;         // host: [result_slots, step_bytes_]
  engine::Buffer result_ring_;       // host: StepResult [result_slots]
  engine::Buffer statistics_ring_;   // host: [result_slots, statistic_elements()]
  std::vector<engine::Event> done_;  // [result_slots] of the last task in each
  std::uint64_t tasks_ = 0;          // enqueued so far, evaluation included
  std::uint64_t steps_ = 0;          // of training, enqueued since the last restart
  std::vector<dataflow::GradientPart> gradient_parts_;
  std::vector<std::unique_ptr<engine::TaskGraph>> gradient_graphs_;  // by part; the first runs forward before it
  UpdateSources sources_;
  std::unique_ptr<engine::TaskGraph> update_graph_;  // reads sources_
  std::unique_ptr<engine::TaskGraph> evaluation_graph_;
  std::unique_ptr<engine::TaskGraph> own_evaluation_graph_;  // null: own weights are not evaluated
  std::unique_ptr<engine::TaskGraph> statistics_graph_;      // null: they are not measured
  std::unique_ptr<engine::Stream> stream_;                   // last: its work ends before what it uses goes
};

}  // namespace arbalest::learners
