#include "sma/synchronizer.h"

#include <algorithm>

#include "engine/base/error.h"

namespace arbalest::sma {

namespace {

// Vectors that the center keeps besides z; nullopt if the run needs no center: it always has one learner, and one
// scheme that leaves a single learner's weights and state unchanged.
std::optional<CenterVectors> center_vectors(const SynchronizerNeeds& needs) {
  CenterVectors vectors;
  bool meets = needs.may_resize || needs.schemes.size() > 1;
  for (const Options& options : needs.schemes) {
    const Coupling coupling = options.coupling(needs.most_learners);
    meets |= coupling != Coupling::kNone;
    vectors.velocity |= options.nesterov;
    vectors.mean |= coupling == Coupling::kAssign;
    vectors.gradient |= coupling == Coupling::kGradient;
    if (options.local_state == LocalState::kAverage) vectors.state_slots = needs.state_slots;
  }
  return meets ? std::optional(vectors) : std::nullopt;
}

// The server of this process's shard; nullopt if no scheme of the run has one.
std::optional<ServerNeeds> server_needs(const SynchronizerNeeds& needs, std::span<engine::Device* const> devices,
                                        const Shards& shards) {
  if (!Synchronizer::has_server(needs)) return std::nullopt;
  return ServerNeeds{.rule = needs.rule,
                     .ranges = shards.cut(needs.ranges, needs.process),
                     .learners = needs.most_learners,
                     .copies_gradients = (devices.size() > 1 || needs.processes > 1) && devices.front()->is_cuda()};
}

}  // namespace

bool Synchronizer::has_server(const SynchronizerNeeds& needs) {
  const auto is_server = [&](const Options& options) {
    return options.scheme == Scheme::kAsyncSgd &&
           options.coupling(std::max(2, needs.most_learners)) == Coupling::kServer;
  };
  return needs.most_learners >= 2 && std::ranges::any_of(needs.schemes, is_server);
}

std::vector<std::size_t> Synchronizer::device_bytes(const SynchronizerNeeds& needs,
                                                    std::span<engine::Device* const> devices,
                                                    const CenterSizes& sizes) {
  std::vector<std::size_t> bytes(devices.size());
  const std::optional<CenterVectors> vectors = center_vectors(needs);
  if (!vectors) return bytes;
  for (std::size_t d = 0; d < devices.size(); ++d) {
    bytes[d] = Center::device_bytes(*devices[d], sizes, *vectors);
    if (needs.measures_gradients) bytes[d] += GradientSpread::device_bytes(sizes.trainable());
    if (needs.compares_copies) {
      bytes[d] += CopyComparison::device_bytes(needs.most_learners, sizes.compared_ranges().size());
    }
  }
  const Shards shards(sizes, needs.processes);
  if (const auto server = server_needs(needs, devices, shards)) {
    bytes.front() += ParameterServer::device_bytes(*server, shards.sizes_of(needs.process));
  }
  return bytes;
}

Synchronizer::Synchronizer(const SynchronizerNeeds& needs, std::span<engine::Device* const> devices,
                           const CenterSizes& sizes, engine::Collective& collective, int result_slots)
    : shards_(sizes, needs.processes) {
  const std::optional<CenterVectors> vectors = center_vectors(needs);
  if (!vectors) return;
  center_.emplace(devices, sizes, *vectors, collective, result_slots);
  if (auto server = server_needs(needs, devices, shards_)) {
    server_.emplace(*devices.front(), center_->stream(0), shards_.sizes_of(needs.process), std::move(*server));
  }
  if (needs.measures_gradients) spread_.emplace(devices, sizes.trainable(), result_slots);
  if (needs.compares_copies) {
    comparison_.emplace(devices, needs.most_learners, result_slots, sizes.compared_ranges().size());
  }
}

void Synchronizer::set_replicas(std::vector<ReplicaVectors> replicas, int all) {
  if (spread_) {
    std::vector<std::vector<const float*>> gradients;
    for (const ReplicaVectors& of_device : replicas) gradients.push_back(of_device.gradients);
    spread_->set_gradients(std::move(gradients));
  }
  if (center_) center_->set_replicas(std::move(replicas), all);
}

bool Synchronizer::compare_center() {
  if (!comparison_ || !center_->has_copies()) return false;
  copies_.resize(center_->devices());
  for (std::size_t d = 0; d < copies_.size(); ++d) copies_[d] = {center_->present(d)};
  const CenterSizes& sizes = center_->sizes();
  comparison_->enqueue(center_->streams(), copies_,
                       std::vector{engine::ElementRange{0, sizes.elements + sizes.frozen}});
  return true;
}

void Synchronizer::forget() {
  if (spread_) spread_->forget();
  if (comparison_) comparison_->forget();
}

void Synchronizer::settle() {
  if (!center_) return;
  for (const engine::Event& event : center_->record()) center_->wait(event);
}

void Synchronizer::drain() noexcept {
  if (center_) center_->drain();
}

}  // namespace arbalest::sma
