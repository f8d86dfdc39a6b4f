#include "sma/central_model.h"

#include "engine/base/error.h"
#include "engine/waiting.h"

namespace arbalest::sma {

static_assert(sizeof(AveragingResult) == engine::kAveragingTail * sizeof(float));

namespace {

engine::StreamOptions stream_options() { return {.name = "averaging", .role = engine::StreamRole::kSynchronization}; }

std::size_t sum_bytes(const CentralSizes& sizes) { return bytes_of(sizes.elements + engine::kAveragingTail); }

}  // namespace

std::vector<engine::ElementRange> CentralSizes::compared_ranges() const {
  std::vector<engine::ElementRange> ranges;
  engine::for_each_piece({0, trainable()}, parts, [&](const engine::ElementRange& piece, bool is_part) {
    if (!is_part) ranges.push_back(piece);
  });
  return ranges;
}

std::size_t CentralModel::device_bytes(const engine::Device& device, const CentralSizes& sizes,
                                       const CentralVectors& vectors) {
  const std::size_t whole = 2 + (vectors.velocity ? 1 : 0) + (vectors.mean ? 1 : 0) + (vectors.gradient ? 1 : 0);
  return whole * bytes_of(sizes.elements + sizes.frozen) + vectors.state_slots * bytes_of(sizes.trainable()) +
         sum_bytes(sizes) + device.stream_bytes(stream_options());
}

CentralModel::CentralModel(std::span<engine::Device* const> devices, const CentralSizes& sizes,
                           const CentralVectors& vectors, engine::Collective& collective, int result_slots)
    : sizes_(sizes), collective_(collective), result_slots_(result_slots) {
  ARBALEST_CHECK(collective.ranks() == static_cast<int>(devices.size()));
  for (engine::Device* device : devices) {
    PerDevice& entry = devices_.emplace_back();
    entry.device = device;
    for (engine::Buffer& central : entry.central) central = device->allocate(whole_bytes());
    if (vectors.velocity) entry.velocity = device->allocate(whole_bytes());
    if (vectors.mean) entry.mean = device->allocate(whole_bytes());
    if (vectors.gradient) entry.gradient = device->allocate(whole_bytes());
    if (vectors.state_slots > 0) entry.state = device->allocate(vectors.state_slots * bytes_of(sizes.trainable()));
    entry.sum = device->allocate(sum_bytes(sizes));
    entry.stream = device->create_stream(stream_options());
    streams_.push_back(entry.stream.get());
  }
  results_ = devices_.front().device->allocate_host(static_cast<std::size_t>(result_slots) * sizeof(AveragingResult));
  events_.resize(devices_.size());
}

float* CentralModel::state(std::size_t device, std::size_t slot) const {
  return devices_[device].state.as<float>() + static_cast<std::int64_t>(slot) * sizes_.trainable();
}

void CentralModel::set_replicas(std::vector<ReplicaVectors> replicas, int all) {
  ARBALEST_CHECK(replicas.size() == devices_.size());
  count_ = all;
  for (std::size_t d = 0; d < devices_.size(); ++d) devices_[d].replicas = std::move(replicas[d]);
}

void CentralModel::set(std::size_t device, const float* weights) {
  const PerDevice& entry = devices_[device];
  engine::Stream& stream = *entry.stream;
  for (const engine::Buffer& central : entry.central) {
    stream.copy(central.as<float>(), weights, whole_bytes(), "set central model");
  }
  if (sizes_.frozen > 0 && mean(device) != nullptr) {  // averaging never writes them there
    stream.copy(mean(device) + sizes_.elements, weights + sizes_.elements, bytes_of(sizes_.frozen),
                "set frozen parameters");
  }
  if (velocity(device) != nullptr) stream.fill_zero(velocity(device), whole_bytes(), "set central model");
  engine::wait_for(stream);
}

std::span<const engine::Event> CentralModel::restart(std::span<const float* const> models) {
  for (std::size_t d = 0; d < devices_.size(); ++d) {
    engine::Stream& stream = *devices_[d].stream;
    if (models[d] != present(d)) stream.copy(present(d), models[d], vector_bytes(), "restart central model");
    stream.copy(other(d), present(d), vector_bytes(), "restart central momentum");
    if (velocity(d) != nullptr) stream.fill_zero(velocity(d), vector_bytes(), "restart central momentum");
  }
  return record();
}

void CentralModel::wait_for(std::span<const std::vector<engine::Event>> ready, const char* label) {
  ARBALEST_CHECK(ready.size() == devices_.size());
  for (std::size_t d = 0; d < devices_.size(); ++d) {
    const engine::Event* last = nullptr;  // learners of a team have one event
    for (const engine::Event& event : ready[d]) {
      const bool is_same = last != nullptr && last->stream() == event.stream() && last->position() == event.position();
      if (!is_same) devices_[d].stream->wait(event, label);
      last = &event;
    }
  }
}

std::span<const engine::Event> CentralModel::record() {
  for (std::size_t d = 0; d < devices_.size(); ++d) events_[d] = devices_[d].stream->record();
  return events_;
}

void CentralModel::set_operands(std::size_t device, const float* base, float* target) {
  devices_[device].base = base;
  devices_[device].target = target;
}

std::span<const engine::Event> CentralModel::average(float step, float momentum, bool nesterov) {
  for (std::size_t d = 0; d < devices_.size(); ++d) set_operands(d, present(d), other(d));
  engine::CentralStep by{.step = step, .momentum = momentum, .mean_factor = mean_factor()};
  if (nesterov) by.velocity = devices_.front().velocity.as<float>();
  const std::span<const engine::Event> read = average_operands(by);
  parity_ = 1 - parity_;
  return read;
}

std::span<const engine::Event> CentralModel::average_operands(const engine::CentralStep& by) {
  const bool alone = is_alone();
  if (alone) {
    average_alone(by);
  } else {
    average_together(by);
  }
  const PerDevice& first = devices_.front();
  AveragingResult* result = results_.as<AveragingResult>() + rounds_ % static_cast<std::uint64_t>(result_slots_);
  const float* tail = first.sum.as<float>() + sizes_.elements;
  ticket_ = {first.stream->deliver(result, tail, sizeof(AveragingResult), "averaging result"), result};
  if (alone) events_.front() = ticket_.done;
  ++rounds_;
  return events_;
}

void CentralModel::average_alone(const engine::CentralStep& by) {
  const PerDevice& entry = devices_.front();
  entry.stream->enqueue(
      engine::LocalAveraging{entry.replicas.weights, entry.base, entry.target, entry.sum.as<float>() + sizes_.elements,
                             by, sizes_.elements, sizes_.statistics},
      "averaging");
}

void CentralModel::average_together(const engine::CentralStep& by) {
  parts_.clear();
  for (std::size_t d = 0; d < devices_.size(); ++d) {
    const PerDevice& entry = devices_[d];
    entry.stream->enqueue(engine::ReplicaDifference{entry.replicas.weights, entry.base, entry.sum.as<float>(),
                                                    sizes_.elements, sizes_.statistics},
                          "averaging read");
    events_[d] = entry.stream->record();
    parts_.push_back({entry.stream.get(), entry.sum.as<float>()});
  }
  collective_.all_reduce_sum(parts_, static_cast<std::size_t>(sizes_.elements + engine::kAveragingTail), "all-reduce");
  for (const PerDevice& entry : devices_) {
    engine::CentralStep step = by;
    if (by.velocity != nullptr) step.velocity = entry.velocity.as<float>();
    entry.stream->enqueue(engine::CentralUpdate{entry.base, entry.target, entry.sum.as<float>(), step, sizes_.elements,
                                                sizes_.statistics},
                          "central update");
  }
}

template <typename Vectors, typename Mean>
void CentralModel::average_vectors(const Vectors& vectors_of, const Mean& mean_of, std::int64_t offset,
                                   std::int64_t elements, bool is_part, const char* label) {
  parts_.clear();
  for (std::size_t d = 0; d < devices_.size(); ++d) {
    const PerDevice& entry = devices_[d];
    entry.stream->enqueue(engine::VectorMean{vectors_of(entry), offset, mean_of(d), elements, mean_factor()}, label);
    parts_.push_back({entry.stream.get(), mean_of(d)});
  }
  if (!is_alone() && !is_part) collective_.all_reduce_sum(parts_, static_cast<std::size_t>(elements), "all-reduce");
}

void CentralModel::average_gradients(std::int64_t begin, std::int64_t end) {
  engine::for_each_piece({begin, end}, sizes_.parts, [&](const engine::ElementRange& piece, bool is_part) {
    average_vectors([](const PerDevice& entry) { return std::span(entry.replicas.gradients); },
                    [&](std::size_t d) { return gradient(d) + piece.begin; }, piece.begin, piece.end - piece.begin,
                    is_part, "mean gradient");
  });
}

void CentralModel::average_state() {
  for (std::size_t slot = 0; slot < devices_.front().replicas.state.size(); ++slot) {
    average_vectors([&](const PerDevice& entry) { return std::span(entry.replicas.state[slot]); },
                    [&](std::size_t d) { return state(d, slot); }, 0, sizes_.trainable(), false,
                    "mean optimizer state");
  }
}

void CentralModel::wait(const engine::Event& event) { engine::wait_for(collective_, event); }

void CentralModel::drain() noexcept {
  for (const PerDevice& entry : devices_) {
    try {
      wait(entry.stream->record());
    } catch (const std::exception&) {
      // The next wait for a result throws this error. Draining continues, so that no stream keeps waiting for the
      // failed device.
    }
  }
  for (const PerDevice& entry : devices_) engine::drain(*entry.stream);
}

}  // namespace arbalest::sma
