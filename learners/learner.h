// A replica being trained on a stream of its own, one mini-batch after the other.
#pragma once

#include <cstdint>
#include <memory>
#include <optional>
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
  // The device's two buffers of the central model; both null where it is always the only learner.
  const float* central[2] = {nullptr, nullptr};
  // The device's weights that evaluation reads, and the same in low precision where the plans read that.
  float* evaluation_weights = nullptr;
  const engine::BFloat16* rounded_evaluation_weights = nullptr;
  // What gradient() and what evaluate() gather their mini-batches from; null: the batch brings its images.
  const dataflow::ResidentData* training_data = nullptr;
  const dataflow::ResidentData* evaluation_data = nullptr;
  bool measures_statistics = false;  // measure_statistics() will be called
};

class Learner {
 public:
  // What one takes of the device's memory.
  static std::size_t device_bytes(const engine::Device& device, const dataflow::Plan& training,
                                  const dataflow::Plan& inference, const engine::UpdateRule& rule);

  // Records its task graphs. The plans, data and buffers must outlive it. Throws kOutOfMemory.
  Learner(engine::Device& device, const dataflow::Plan& training, const dataflow::Plan& inference,
          const LearnerOptions& options);

  float* weights() const noexcept { return replica_.weights(); }
  // The same in low precision; null where the plans do not read it.
  const engine::BFloat16* rounded_weights() const noexcept { return replica_.rounded(); }
  engine::Stream& stream() const noexcept { return *stream_; }

  // One training step is a call of gradient() and then one of update() or update_alone(). Stream ordering: they enqueue
  // on stream() and return without waiting. The host memory of the task that was enqueued result_slots earlier is used
  // again, by evaluate() too: its ticket must have been waited for and read (kInternal if it is still under way).
  // The batch's images [b, c, h, w] and labels [b], if it brings them, must stay until Ticket::done.
  Ticket gradient(const dataflow::Batch& batch, const engine::StepParameters& parameters);
  // Applies the gradient after `after` has passed: the read of w by averaging. Completes the ticket's `done`.
  void update(Ticket& ticket, const engine::Event& after);
  // The same where there is no other learner: the weights are then the model that is saved, and a step that is not
  // finite is refused (engine/ops/weight_update.h).
  void update_alone(Ticket& ticket);

  // Loss and accuracy of the evaluation weights on one mini-batch, after `weights_ready`.
  Ticket evaluate(const dataflow::Batch& batch, const engine::Event& weights_ready);

  // The forward pass of training on the evaluation weights, after `weights_ready`, for the statistics of its mini-batch
  // (engine/ops/batch_norm.h). Only if LearnerOptions::measures_statistics, and where there are running statistics. It
  // overwrites the gradient.
  Ticket measure_statistics(const dataflow::Batch& batch, const engine::StepParameters& parameters,
                            const engine::Event& weights_ready);

  // Takes the weights as they are after the last update into `average` (engine/ops/moving_average.h; a weight of 1
  // makes it a copy) and, unless it is null, rounds that to `rounded` ([elements] on the device each); returns the
  // event after which it is there.
  engine::Event move_average(float* average, float weight, engine::BFloat16* rounded);

  // To be called when the host has written weights(), before anything is enqueued that reads them. Returns when the
  // host may write them again.
  void weights_were_set();

  // w := z, the optimizer's state := 0 and its steps counted from 1 again, after `ready`. central: [elements] on the
  // device.
  void restart(const float* central, const engine::Event& ready);

 private:
  std::size_t vector_bytes() const;
  std::size_t state_bytes() const;  // of a vector of the optimizer's
  std::size_t statistics_bytes() const;
  void round_weights(const float* weights, engine::BFloat16* rounded);
  std::unique_ptr<engine::TaskGraph> record_update(const float* const (&central)[2]);
  void enqueue_gather(const dataflow::Plan& plan, const dataflow::ResidentData* data);
  // The mini-batch and, unless null, the parameters to where the recordings read them; what is not images in one copy,
  // labeled `label`.
  void copy_in(const dataflow::Plan& plan, const dataflow::ResidentData* data, const dataflow::Batch& batch,
               const engine::StepParameters* parameters, const char* label);
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
  std::unique_ptr<engine::TaskGraph> gradient_graph_;
  std::unique_ptr<engine::TaskGraph> update_graph_;  // null: it is always alone
  std::unique_ptr<engine::TaskGraph> update_alone_graph_;
  std::unique_ptr<engine::TaskGraph> evaluation_graph_;
  std::unique_ptr<engine::TaskGraph> statistics_graph_;  // null: they are not measured
  std::unique_ptr<engine::Stream> stream_;               // last: its work ends before what it uses goes
};

}  // namespace arbalest::learners
