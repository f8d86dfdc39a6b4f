// Measures the variance of the learners' gradients in one step. The gradient noise scale is estimated from it.
#pragma once

#include <cstddef>
#include <cstdint>
#include <functional>
#include <span>
#include <vector>

#include "engine/device.h"
#include "engine/passes/vector_variance.h"

namespace arbalest::sma {

// The gradients of one step of k learners, or of two successive steps of one learner.
struct VarianceSample {
  double square_mean = 0.0;  // mean_j |g_j|^2
  double mean_square = 0.0;  // |mean_j g_j|^2
};

class GradientVariance {
 public:
  // Bytes that a GradientVariance takes of each device's memory.
  static std::size_t device_bytes(std::int64_t trainable) {
    return static_cast<std::size_t>(trainable) * sizeof(float) + engine::kVectorVarianceResults * sizeof(float);
  }

  // The devices must outlive it. result_slots: measurements that may be under way.
  GradientVariance(std::span<engine::Device* const> devices, std::int64_t trainable, int result_slots);

  // Sets each device's gradients, [trainable] each; their addresses must not change afterwards. Forgets all
  // measurements of the previous gradients.
  void set_gradients(std::vector<std::vector<const float*>> gradients);

  // Enqueues a measurement on each device's stream, at a point where its gradients are final; they must stay until the
  // enqueued work has passed. With a single learner, every second call measures, and the others keep its gradient.
  // Returns false if nothing is measured: now, or (one learner on each of several devices) ever.
  bool enqueue(std::span<engine::Stream* const> streams);

  // Returns the oldest measurement that was not taken yet. wait(event) must block the host until `event` has passed.
  VarianceSample take(const std::function<void(const engine::Event&)>& wait);
  // Forgets the measurements that were not taken. The streams must be idle.
  void forget() { taken_ = enqueued_; }

 private:
  struct PerDevice {
    engine::Buffer previous;  // [trainable]: the gradient of the previous step
    engine::Buffer result;    // [kVectorVarianceResults]
    engine::Buffer results;   // host: [result_slots, kVectorVarianceResults]
    std::vector<const float*> gradients;
    std::vector<engine::Event> done;  // by slot
  };

  std::size_t slot(std::uint64_t measurement) const { return measurement % slots_; }

  std::int64_t trainable_;
  std::size_t slots_;
  std::vector<PerDevice> devices_;
  int learners_ = 0;
  bool has_previous_ = false;
  std::uint64_t enqueued_ = 0;
  std::uint64_t taken_ = 0;
};

}  // namespace arbalest::sma
