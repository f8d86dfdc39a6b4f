// A learner: one replica of the model, which gets new vectors here. Learners train and evaluate in teams (team.h).
#pragma once

#include <cstdint>
#include <optional>
#include <utility>
#include <vector>

#include "dataflow/input/batches/batch_ring.h"
#include "dataflow/input/batches/cached_data.h"
#include "dataflow/parameter_layout.h"
#include "engine/device.h"
#include "engine/shared_weights.h"
#include "learners/replica.h"

namespace arbalest::learners {

// The result of one enqueued mini-batch, to wait for.
struct Ticket {
  std::uint64_t task = 0;  // number of the mini-batch
  int examples = 0;        // number of labeled examples in it
  // Passes when *result is written.
  engine::Event done = {};
  const engine::StepResult* result = nullptr;  // host memory, valid until result_slots more tasks were enqueued
  // [statistic_elements()], valid as long as `result`: targets of the running statistics. Set by measure_statistics().
  const float* statistics = nullptr;
  // Steps of other learners on shared weights that ended between this step's copy and itself; valid as `result`.
  const std::int64_t* staleness = nullptr;
};

// Options that all learners of a device have in common.
struct LearnerOptions {
  int result_slots = 4;  // tasks that may be enqueued before the oldest one's ticket has been waited for
  engine::UpdateRule rule = {};
  std::optional<float> clip_gradient_norm = {};  // limit to which a gradient's norm is clipped
  // The backward pass is recorded in parts of about this many bytes of gradient (Plan::gradient_parts); 0: in one part.
  std::int64_t gradient_part_bytes = 0;
  bool sums_gradients = false;  // whether UpdateSources::push_every will be more than 1
  // Data from which gradient() and evaluate() gather their mini-batches; null: the batch brings its tensors.
  const dataflow::CachedData* training_data = nullptr;
  const dataflow::CachedData* evaluation_data = nullptr;
  bool measures_statistics = false;    // whether measure_statistics() will be called
  bool evaluates_own_weights = false;  // whether evaluate_own_weights() will be called
};

// Memory of a device that its learners share.
struct SharedVectors {
  float* evaluation_weights = nullptr;                           // the weights that evaluate() reads
  const engine::BFloat16* rounded_evaluation_weights = nullptr;  // their copy in low precision, if the plans read one
};

// Vectors that the update reads besides the learner's own; all on its device, [elements of the flat vectors] each.
struct UpdateSources {
  // The update may pull the weights towards one of these (engine/passes/weight_update.h); both null: it never does.
  const float* references[2] = {nullptr, nullptr};
  // Gradient of the trainable elements; null: the learner's own gradient.
  const float* gradient = nullptr;
  // Number of mini-batches whose gradients the learner pushes to a server at once; 0: it has no server. Between two
  // pushes update() takes steps of plain SGD, w <- w - gamma g. Not with references or a gradient.
  int push_every = 0;
  // The weights that all learners write (engine/shared_weights.h); null: there are none. gradient() then begins
  // with a copy of them, and update() takes its step there. Not with references, a gradient or a server.
  engine::SharedWeights* shared = nullptr;

  bool operator==(const UpdateSources&) const = default;
};

// Says whether a learner keeps its optimizer's state when it gets new weights.
enum class OptimizerState {
  kKeep,
  kZero,  // set to zero; AdamW's steps are counted from 1 again
};

class Learner {
 public:
  // `stream`: the team's. Stream, parameters and the replica's vectors must outlive the learner.
  Learner(engine::Stream& stream, const dataflow::ParameterLayout& parameters, Replica replica)
      : stream_(stream), parameters_(parameters), replica_(std::move(replica)) {}

  float* weights() const noexcept { return replica_.weights; }
  float* gradient() const noexcept { return replica_.gradient; }
  const std::vector<StateSlot>& state() const noexcept { return replica_.state; }
  // The weights in low precision; null if the plans do not read them.
  const engine::BFloat16* rounded_weights() const noexcept { return replica_.rounded; }
  // The stream of the learner's team.
  engine::Stream& stream() const noexcept { return stream_; }

  // Training steps since the optimizer's state was last zero. A learner that goes on with saved state needs them, too.
  std::uint64_t steps() const noexcept { return steps_; }
  void continue_from(std::uint64_t steps) noexcept { steps_ = steps; }
  // Counts the step that its team enqueues, and returns the number of steps with it.
  std::uint64_t count_step() noexcept { return ++steps_; }

  // Sets the optimizer's state to zero; AdamW's steps are counted from 1 again.
  void zero_state();
  // Must be called after the host has written weights(), before any work is enqueued that reads them. Returns when the
  // host may write them again.
  void weights_were_set();

  // Copies `weights` ([elements] on the device) to the learner's own weights, after `ready`. Returns the event after
  // which the copy is complete.
  engine::Event assign(const float* weights, const engine::Event& ready, OptimizerState state);
  // Copies `values` ([trainable_elements()] on the device) to slot `slot` of the optimizer's state, after `ready`.
  void assign_state(std::size_t slot, const float* values, const engine::Event& ready);

 private:
  engine::Stream& stream_;
  const dataflow::ParameterLayout& parameters_;
  const Replica replica_;
  std::uint64_t steps_ = 0;
};

}  // namespace arbalest::learners
