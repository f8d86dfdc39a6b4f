#include "sma/gradient_variance.h"

#include <algorithm>

#include "engine/base/error.h"
#include "engine/stream.h"

namespace arbalest::sma {

GradientVariance::GradientVariance(std::span<engine::Device* const> devices, std::int64_t trainable, int result_slots)
    : trainable_(trainable), slots_(static_cast<std::size_t>(result_slots)) {
  constexpr std::size_t kResultBytes = engine::kVectorVarianceResults * sizeof(float);
  for (engine::Device* device : devices) {
    PerDevice& entry = devices_.emplace_back();
    entry.previous = device->allocate(static_cast<std::size_t>(trainable) * sizeof(float));
    entry.result = device->allocate(kResultBytes);
    entry.results = device->allocate_host(slots_ * kResultBytes);
    entry.done.resize(slots_);
  }
}

void GradientVariance::set_gradients(std::vector<std::vector<const float*>> gradients) {
  ARBALEST_CHECK(gradients.size() == devices_.size());
  learners_ = 0;
  for (std::size_t d = 0; d < devices_.size(); ++d) {
    learners_ += static_cast<int>(gradients[d].size());
    devices_[d].gradients = std::move(gradients[d]);
  }
  if (learners_ == 1) devices_.front().gradients.push_back(devices_.front().previous.as<float>());
  has_previous_ = false;
  forget();
}

bool GradientVariance::enqueue(std::span<engine::Stream* const> streams) {
  const auto has_several = [](const PerDevice& entry) { return entry.gradients.size() > 1; };
  if (std::ranges::none_of(devices_, has_several)) return false;
  if (learners_ == 1 && !has_previous_) {
    const PerDevice& entry = devices_.front();
    streams.front()->copy(entry.previous.data(), entry.gradients.front(),
                          static_cast<std::size_t>(trainable_) * sizeof(float), "keep gradient");
    has_previous_ = true;
    return false;
  }
  has_previous_ = false;
  for (std::size_t d = 0; d < devices_.size(); ++d) {
    PerDevice& entry = devices_[d];
    if (!has_several(entry)) continue;
    streams[d]->enqueue(engine::VectorVariance{entry.gradients, trainable_, entry.result.as<float>()},
                        "gradient variance");
    float* result = entry.results.as<float>() + slot(enqueued_) * engine::kVectorVarianceResults;
    entry.done[slot(enqueued_)] = streams[d]->deliver(
        result, entry.result.data(), engine::kVectorVarianceResults * sizeof(float), "gradient variance");
  }
  ++enqueued_;
  return true;
}

VarianceSample GradientVariance::take(const std::function<void(const engine::Event&)>& wait) {
  ARBALEST_CHECK(taken_ < enqueued_);
  // n gradients of a device give E mean|g|^2 = G + S and E |mean g|^2 = G + S / n. G is the squared norm of the true
  // gradient, S the variance of one gradient. The devices' means of G and S give the values for all k gradients.
  double signal = 0.0;
  double variance = 0.0;
  int devices = 0;
  for (PerDevice& entry : devices_) {
    if (entry.gradients.size() < 2) continue;
    wait(entry.done[slot(taken_)]);
    const float* result = entry.results.as<float>() + slot(taken_) * engine::kVectorVarianceResults;
    const auto n = static_cast<double>(entry.gradients.size());
    const double square_mean = static_cast<double>(result[engine::kSumOfSquares]) / n;
    const double mean_square = static_cast<double>(result[engine::kSquareOfSum]) / (n * n);
    const double of_device = (square_mean - mean_square) * n / (n - 1.0);
    variance += of_device;
    signal += mean_square - of_device / n;
    ++devices;
  }
  ++taken_;
  const double k = std::max(2, learners_);
  return {(signal + variance) / devices, (signal + variance / k) / devices};
}

}  // namespace arbalest::sma
