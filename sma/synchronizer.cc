#include "sma/synchronizer.h"

#include <algorithm>

#include "engine/error.h"

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
    : elements_(sizes.elements), frozen_(sizes.frozen), shards_(sizes, needs.processes), process_(needs.process) {
  const std::optional<CenterVectors> vectors = center_vectors(needs);
  if (!vectors) return;
  has_velocity_ = vectors->velocity;
  center_.emplace(devices, sizes, *vectors, collective, result_slots);
  if (auto server = server_needs(needs, devices, shards_)) {
    server_.emplace(*devices.front(), center_->stream(0), shards_.sizes_of(process_), std::move(*server));
  }
  if (needs.measures_gradients) spread_.emplace(devices, sizes.trainable(), result_slots);
  if (needs.compares_copies) {
    comparison_.emplace(devices, needs.most_learners, result_slots, sizes.compared_ranges().size());
  }
}

void Synchronizer::bind(const Options& options, std::vector<std::vector<ReplicaView>> replicas, int elsewhere) {
  options_ = options;
  replicas_ = std::move(replicas);
  copies_.assign(replicas_.size(), {});
  count_ = elsewhere;
  std::vector<ReplicaVectors> vectors;
  for (const auto& of_device : replicas_) {
    count_ += static_cast<int>(of_device.size());
    ReplicaVectors& entry = vectors.emplace_back();
    if (options.local_state == LocalState::kAverage) entry.state.resize(of_device.front().state.size());
    for (const ReplicaView& replica : of_device) {
      entry.weights.push_back(replica.weights);
      entry.gradients.push_back(replica.gradient);
      for (std::size_t slot = 0; slot < entry.state.size(); ++slot) entry.state[slot].push_back(replica.state[slot]);
    }
  }
  coupling_ = options.coupling(count_);
  mean_is_model_ = false;
  last_learning_rate_ = 0.0F;
  ARBALEST_CHECK(center_ || coupling_ == Coupling::kNone);
  if (spread_) {
    std::vector<std::vector<const float*>> gradients;
    for (const ReplicaVectors& entry : vectors) gradients.push_back(entry.gradients);
    spread_->set_gradients(std::move(gradients));
  }
  if (center_) center_->set_replicas(std::move(vectors), count_);
  if (coupling_ == Coupling::kServer) server_->restart(server_weights() + shards_.of(process_).begin, options.period);
  if (coupling_ == Coupling::kShared) {
    ARBALEST_CHECK(replicas_.size() == 1 && !center_->has_copies());
    shared_.values = center_->present(0);
  }
}

UpdateOperands Synchronizer::operands(std::size_t device) {
  UpdateOperands operands;
  if (coupling_ == Coupling::kPull) {
    for (const int parity : {0, 1}) operands.references[parity] = center_->central(device, parity);
  }
  if (coupling_ == Coupling::kGradient) operands.gradient = center_->gradient(device);
  if (coupling_ == Coupling::kServer) operands.push_every = options_.period;
  if (coupling_ == Coupling::kShared) operands.shared = &shared_;
  return operands;
}

std::span<const engine::Event> Synchronizer::synchronize(std::span<const std::vector<engine::Event>> ready,
                                                         float learning_rate) {
  center_->wait_for(ready, "wait for updated replicas");
  float momentum = options_.momentum_for(count_);
  if (options_.scheme == Scheme::kSlowMo && last_learning_rate_ > 0.0F) momentum *= learning_rate / last_learning_rate_;
  last_learning_rate_ = learning_rate;
  mean_is_model_ = false;
  const std::span<const engine::Event> read = center_->average(options_.step_for(count_), momentum, options_.nesterov);
  if (coupling_ == Coupling::kPull) return read;
  if (options_.local_state == LocalState::kAverage) center_->average_state();
  return center_->record();
}

void Synchronizer::reduce_gradients(std::span<const std::vector<engine::Event>> ready, std::int64_t begin,
                                    std::int64_t end) {
  center_->wait_for(ready, "wait for the gradients' part");
  center_->average_gradients(begin, end);
}

engine::Event Synchronizer::push(std::size_t learner, const engine::Event& ready, float learning_rate) {
  std::size_t device = 0;
  std::size_t j = learner;
  for (; j >= replicas_[device].size(); ++device) j -= replicas_[device].size();
  const ReplicaView& replica = replicas_[device][j];
  return server_->push({.learner = learner,
                        .ready = ready,
                        .gradient = replica.pushed,
                        .statistics = replica.gradient,
                        .gradient_scale = replica.gradient_scale,
                        .is_elsewhere = device > 0,
                        .learning_rate = learning_rate});
}

void Synchronizer::spread_server_weights() {
  for (std::size_t d = 1; d < replicas_.size(); ++d) {
    engine::Stream& stream = center_->stream(d);
    stream.wait(server_->pushed(), "wait for the server's weights");
    stream.copy(center_->present(d), server_weights(), center_->vector_bytes(), "copy of the server's weights");
    server_->wait_for_reader(stream.record());
  }
}

void Synchronizer::read_shared_after(std::span<const std::vector<engine::Event>> ready) {
  center_->wait_for(ready, "wait for the learners' steps");
}

std::span<const engine::Event> Synchronizer::gather(std::span<const std::vector<engine::Event>> ready) {
  center_->wait_for(ready, "wait for the replicas to be read");
  mean_is_model_ = true;
  if (coupling_ == Coupling::kAssign) {
    return center_->average_replicas([&](std::size_t d) { return center_->present(d); },
                                     [&](std::size_t d) { return center_->mean(d); });
  }
  // The replicas have equal weights, and their mean relative to one of them is exact. Their statistics differ, so these
  // are averaged relative to zero, which is the same on every device.
  const auto trainable = static_cast<std::size_t>(center_->sizes().trainable()) * sizeof(float);
  for (std::size_t d = 0; d < replicas_.size(); ++d) {
    engine::Stream& stream = center_->stream(d);
    float* base = center_->present(d);
    stream.copy(base, replicas_[d].front().weights, trainable, "base of the mean");
    stream.fill_zero(base + center_->sizes().trainable(), center_->vector_bytes() - trainable, "base of the mean");
  }
  return center_->average_replicas([&](std::size_t d) { return center_->present(d); },
                                   [&](std::size_t d) { return center_->other(d); });
}

const float* Synchronizer::model(std::size_t device) const {
  if (coupling_ == Coupling::kNone) return replicas_[device].front().weights;
  if (!mean_is_model_) return center_->present(device);
  return coupling_ == Coupling::kAssign ? center_->mean(device) : center_->other(device);
}

engine::Event Synchronizer::read_model(std::size_t device, float* average, float weight, engine::BFloat16* rounded) {
  engine::Stream& stream = coupling_ == Coupling::kNone ? *replicas_[device].front().stream : center_->stream(device);
  stream.enqueue(engine::MovingAverage{model(device), average, weight, elements_}, "moving average");
  if (frozen_ > 0) {  // z has them, too, and nothing writes them there
    const float* from = coupling_ == Coupling::kNone ? replicas_[device].front().weights : center_->present(device);
    stream.copy(average + elements_, from + elements_, static_cast<std::size_t>(frozen_) * sizeof(float),
                "frozen parameters");
  }
  if (rounded != nullptr) {
    stream.enqueue(engine::RoundWeights{average, rounded, elements_ + frozen_}, "round moving average");
  }
  return stream.record();
}

std::span<const engine::Event> Synchronizer::measure_gradients(std::span<const std::vector<engine::Event>> ready) {
  is_measured_ = false;
  if (!spread_) return {};
  if (coupling_ == Coupling::kNone) {
    engine::Stream* stream = replicas_.front().front().stream;
    is_measured_ = spread_->enqueue({&stream, 1});
    return {};
  }
  center_->wait_for(ready, "wait for gradients to measure");
  is_measured_ = spread_->enqueue(center_->streams());
  return center_->record();
}

bool Synchronizer::compare_copies(std::span<const std::vector<engine::Event>> ready) {
  const bool compares_replicas = coupling_ == Coupling::kGradient;
  // The devices have copies of a server's weights only where the model is read.
  const bool keeps_copies = coupling_ == Coupling::kPull || coupling_ == Coupling::kAssign;
  const bool has_copies = compares_replicas || (keeps_copies && center_->has_copies());
  const bool has_ranges = !compares_replicas || !center_->sizes().compared_ranges().empty();
  if (!comparison_ || !has_copies || !has_ranges) return false;
  for (std::size_t d = 0; d < replicas_.size(); ++d) {
    copies_[d].clear();
    if (!compares_replicas) copies_[d].push_back(center_->present(d));
    for (std::size_t j = 0; j < replicas_[d].size() && compares_replicas; ++j) {
      copies_[d].push_back(replicas_[d][j].weights);
    }
  }
  if (compares_replicas) center_->wait_for(ready, "wait for updated replicas");
  const engine::ElementRange whole{0, elements_ + frozen_};
  comparison_->enqueue(center_->streams(), copies_,
                       compares_replicas ? center_->sizes().compared_ranges() : std::vector{whole});
  return true;
}

std::span<const engine::Event> Synchronizer::restart(std::span<const std::vector<engine::Event>> ready,
                                                     bool right_after_averaging) {
  if (must_gather(right_after_averaging)) gather(ready);
  if (coupling_ == Coupling::kServer) spread_server_weights();
  center_->wait_for(ready, "wait for updated replicas");
  for (std::size_t d = 0; d < replicas_.size(); ++d) {
    engine::Stream& stream = center_->stream(d);
    const std::size_t bytes = center_->vector_bytes();
    float* present = center_->present(d);
    if (model(d) != present) stream.copy(present, model(d), bytes, "restart center");
    stream.copy(center_->other(d), present, bytes, "restart central momentum");
    if (has_velocity_) stream.fill_zero(center_->velocity(d), bytes, "restart central momentum");
  }
  mean_is_model_ = false;
  last_learning_rate_ = 0.0F;
  return center_->record();
}

void Synchronizer::set_center(std::size_t device, const float* weights) {
  engine::Stream& stream = center_->stream(device);
  for (const int parity : {0, 1}) {
    stream.copy(center_->central(device, parity), weights, center_->whole_bytes(), "set central model");
  }
  if (frozen_ > 0 && center_->mean(device) != nullptr) {  // averaging never writes them there
    stream.copy(center_->mean(device) + elements_, weights + elements_,
                static_cast<std::size_t>(frozen_) * sizeof(float), "set frozen parameters");
  }
  if (has_velocity_) stream.fill_zero(center_->velocity(device), center_->whole_bytes(), "set central model");
  stream.record().synchronize();
}

CenterView Synchronizer::center_view(std::size_t device) const {
  return {center_->present(device), center_->other(device), has_velocity_ ? center_->velocity(device) : nullptr};
}

void Synchronizer::wait(const engine::Event& event) {
  if (center_) {
    center_->wait(event);
  } else {
    event.synchronize();
  }
}

void Synchronizer::settle() {
  if (!center_) return;
  for (const engine::Event& event : center_->record()) center_->wait(event);
}

void Synchronizer::drain() noexcept {
  if (center_) center_->drain();
}

}  // namespace arbalest::sma
