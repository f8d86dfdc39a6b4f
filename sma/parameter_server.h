// The central model w* of asynchronous SGD and its optimizer: a server that applies each learner's gradient as it comes
// (Dean et al., "Large scale distributed deep networks", NIPS 2012: Downpour SGD). w* lies on the first device, and all
// work on it is enqueued on one stream, in the order of the pushes. With several processes, each process has a server,
// whose vectors are one shard of the flat vectors (sma/shards.h).
#pragma once

#include <cstddef>
#include <cstdint>
#include <vector>

#include "engine/base/update_rule.h"
#include "engine/buffer.h"
#include "engine/device.h"
#include "engine/event.h"
#include "engine/passes/weight_update.h"
#include "sma/central_model.h"
#include "sma/options.h"

namespace arbalest::sma {

// The facts about a job that its server needs.
struct ServerNeeds {
  engine::UpdateRule rule = {};                  // the job's optimizer
  std::vector<engine::UpdateRange> ranges = {};  // of the flat vectors
  int learners = 1;                              // at most
  bool copies_gradients = false;                 // whether it cannot read the memory of other devices
};

// One push. The vectors must stay until the event of the push has passed.
struct Push {
  std::size_t learner = 0;                // number over all devices
  engine::Event ready = {};               // after it the gradient is final
  const float* gradient = nullptr;        // [trainable]: the sum over the mini-batches of the push
  const float* statistics = nullptr;      // [elements]: the last mini-batch's statistics, in their ranges
  const float* gradient_scale = nullptr;  // factor of the gradient, from clipping; null: 1
  bool is_elsewhere = false;              // whether these are on another device than the server
  float learning_rate = 0.0F;
};

// The learning rate of a push with this staleness.
inline float rate_of_push(const Options& options, float rate, std::int64_t staleness) {
  return options.scale_by_staleness ? rate / static_cast<float>(staleness + 1) : rate;
}

class ParameterServer {
 public:
  // Memory of the first device that a server takes.
  static std::size_t device_bytes(const ServerNeeds& needs, const CentralSizes& sizes);

  // Device and stream must outlive the server.
  ParameterServer(engine::Device& device, engine::Stream& stream, const CentralSizes& sizes, ServerNeeds needs);

  // Serves `weights`, [elements] on the device, which must last until the next call, with zero optimizer state. A push
  // is the sum of `mini_batches` gradients: the weight decay of every rule but AdamW, where it is no part of the
  // gradient, counts as often. No work may be under way.
  void restart(float* weights, int mini_batches);

  // Enqueues one step of the optimizer with the pushed gradient. Running statistics move towards those of the push. A
  // step with an element that is not finite is refused as a whole, and w* stays (engine/passes/weight_update.h). The
  // previous push of the learner must have ended. Returns the event after which w* is complete and the gradient may
  // change.
  engine::Event push(const Push& push);
  // The event of the last push: w* may be read once it has passed.
  const engine::Event& pushed() const noexcept { return pushed_; }
  // Later pushes wait for `read`, after which work of another stream has read w*.
  void wait_for_reader(const engine::Event& read) { readers_.push_back(read); }
  // Elements that made the server refuse the learner's last push; 0 if it was applied. The push must have ended.
  std::int32_t refused(std::size_t learner) const { return host_refused_.as<std::int32_t>()[learner]; }

  // The optimizer's vectors, [trainable] each, and its steps since they were zero. A checkpoint holds them; no work may
  // be under way when they are read or written.
  std::size_t state_slots() const noexcept { return state_.size(); }
  float* state(std::size_t slot) const { return state_[slot].as<float>(); }
  // Enqueues a copy of `values` to a vector of the optimizer, after `ready`; later pushes follow it.
  void set_state(std::size_t slot, const float* values, const engine::Event& ready);
  std::uint64_t steps() const noexcept { return steps_; }
  void continue_from(std::uint64_t steps) noexcept { steps_ = steps; }

 private:
  void enqueue_update(const Push& push);

  engine::Stream& stream_;
  float* weights_ = nullptr;
  CentralSizes sizes_;
  ServerNeeds needs_;
  engine::UpdateRule rule_;  // the job's, for the mini-batches of a push
  std::vector<engine::Buffer> state_;
  engine::Buffer gradient_;         // [elements]: a copy, if gradients are copied
  engine::Buffer scale_;            // float: likewise
  engine::Buffer parameters_;       // StepParameters [learners]
  engine::Buffer host_parameters_;  // host: likewise
  engine::Buffer refused_;          // int32 [learners]
  engine::Buffer host_refused_;     // host: likewise
  engine::Event pushed_;
  std::vector<engine::Event> readers_;  // since the last push
  std::uint64_t steps_ = 0;
};

}  // namespace arbalest::sma
