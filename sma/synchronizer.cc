#include "sma/synchronizer.h"

#include <algorithm>

#include "engine/base/error.h"

namespace arbalest::sma {

namespace {

// Vectors that the central model keeps besides z; nullopt if the run needs no central model: it always has one learner,
// and one scheme that leaves a single learner's weights and state unchanged.
std::optional<CentralVectors> central_vectors(const SynchronizerNeeds& needs) {
  CentralVectors vectors;
  bool meets = needs.may_resize || needs.schemes.size() > 1;
  for (const Options& options : needs.schemes) {
    const SynchronizationMode mode = options.mode(needs.most_learners);
    meets |= mode != SynchronizationMode::kNone;
    vectors.velocity |= options.nesterov;
    vectors.mean |= mode == SynchronizationMode::kAssign;
    vectors.gradient |= mode == SynchronizationMode::kGradient;
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
           options.mode(std::max(2, needs.most_learners)) == SynchronizationMode::kServer;
  };
  return needs.most_learners >= 2 && std::ranges::any_of(needs.schemes, is_server);
}

std::vector<std::size_t> Synchronizer::device_bytes(const SynchronizerNeeds& needs,
                                                    std::span<engine::Device* const> devices,
                                                    const CentralSizes& sizes) {
  std::vector<std::size_t> bytes(devices.size());
  const std::optional<CentralVectors> vectors = central_vectors(needs);
  if (!vectors) return bytes;
  for (std::size_t d = 0; d < devices.size(); ++d) {
    bytes[d] = CentralModel::device_bytes(*devices[d], sizes, *vectors);
    if (needs.measures_gradients) bytes[d] += GradientVariance::device_bytes(sizes.trainable());
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
                           const CentralSizes& sizes, engine::Collective& collective, int result_slots)
    : shards_(sizes, needs.processes) {
  const std::optional<CentralVectors> vectors = central_vectors(needs);
  if (!vectors) return;
  central_.emplace(devices, sizes, *vectors, collective, result_slots);
  if (auto server = server_needs(needs, devices, shards_)) {
    server_.emplace(*devices.front(), central_->stream(0), shards_.sizes_of(needs.process), std::move(*server));
  }
  if (needs.measures_gradients) variance_.emplace(devices, sizes.trainable(), result_slots);
  if (needs.compares_copies) {
    comparison_.emplace(devices, needs.most_learners, result_slots, sizes.compared_ranges().size());
  }
}

void Synchronizer::set_replicas(std::vector<ReplicaVectors> replicas, int all) {
  if (variance_) {
    std::vector<std::vector<const float*>> gradients;
    for (const ReplicaVectors& of_device : replicas) gradients.push_back(of_device.gradients);
    variance_->set_gradients(std::move(gradients));
  }
  if (central_) central_->set_replicas(std::move(replicas), all);
}

bool Synchronizer::compare_central() {
  if (!comparison_ || !central_->has_copies()) return false;
  copies_.resize(central_->devices());
  for (std::size_t d = 0; d < copies_.size(); ++d) copies_[d] = {central_->present(d)};
  const CentralSizes& sizes = central_->sizes();
  comparison_->enqueue(central_->streams(), copies_,
                       std::vector{engine::ElementRange{0, sizes.elements + sizes.frozen}});
  return true;
}

void Synchronizer::forget() {
  if (variance_) variance_->forget();
  if (comparison_) comparison_->forget();
}

void Synchronizer::settle() {
  if (!central_) return;
  for (const engine::Event& event : central_->record()) central_->wait(event);
}

void Synchronizer::drain() noexcept {
  if (central_) central_->drain();
}

}  // namespace arbalest::sma
