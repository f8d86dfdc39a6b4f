#include "sma/averager.h"

#include <cstring>

#include "engine/error.h"
#include "engine/ops/averaging.h"

namespace arbalest::sma {

static_assert(sizeof(AveragingResult) == engine::kAveragingTail * sizeof(float));

namespace {

engine::StreamOptions stream_options() { return {.name = "averaging", .floating = true}; }

std::size_t sum_bytes(std::int64_t elements) {
  return static_cast<std::size_t>(elements + engine::kAveragingTail) * sizeof(float);
}

}  // namespace

std::size_t Averager::device_bytes(const engine::Device& device, std::int64_t elements) {
  return 2 * static_cast<std::size_t>(elements) * sizeof(float) + sum_bytes(elements) +
         device.stream_bytes(stream_options());
}

Averager::Averager(const Options& options, std::span<engine::Device* const> devices, std::int64_t elements,
                   std::int64_t statistics, engine::Collective& collective, int result_slots)
    : options_(options),
      elements_(elements),
      statistics_(statistics),
      collective_(collective),
      result_slots_(result_slots) {
  ARBALEST_CHECK(collective.ranks() == static_cast<int>(devices.size()));
  for (engine::Device* device : devices) {
    PerDevice& entry = devices_.emplace_back();
    entry.device = device;
    for (engine::Buffer& central : entry.central) central = device->allocate(vector_bytes());
    entry.sum = device->allocate(sum_bytes(elements));
    entry.stream = device->create_stream(stream_options());
    parts_.push_back({entry.stream.get(), entry.sum.as<float>()});
  }
  results_ = devices_.front().device->allocate_host(static_cast<std::size_t>(result_slots) * sizeof(AveragingResult));
  events_.resize(devices_.size());
}

const float* Averager::central_buffer(int device, int parity) const {
  return devices_[static_cast<std::size_t>(device)].central[parity].as<float>();
}

void Averager::set_replicas(std::vector<std::vector<const float*>> replicas) {
  ARBALEST_CHECK(replicas.size() == devices_.size());
  std::size_t count = 0;
  for (std::size_t d = 0; d < devices_.size(); ++d) {
    count += replicas[d].size();
    devices_[d].replicas = std::move(replicas[d]);
  }
  mean_factor_ = 1.0F / static_cast<float>(count);
}

void Averager::set_central(int device, const float* weights) {
  for (const engine::Buffer& central : at(device).central) {
    at(device).stream->copy(central.data(), weights, vector_bytes(), "set central model");
  }
  at(device).stream->record().synchronize();
}

std::span<const engine::Event> Averager::average(std::span<const std::vector<engine::Event>> ready, float alpha) {
  ARBALEST_CHECK(ready.size() == devices_.size());
  for (std::size_t d = 0; d < devices_.size(); ++d) {
    for (const engine::Event& event : ready[d]) devices_[d].stream->wait(event, "wait for updated replicas");
  }
  const bool alone = devices_.size() == 1;
  if (alone) {
    average_alone(alpha);
  } else {
    average_together(alpha);
  }
  PerDevice& first = devices_.front();
  AveragingResult* result = results_.as<AveragingResult>() + rounds_ % static_cast<std::uint64_t>(result_slots_);
  const float* tail = first.sum.as<float>() + elements_;
  ticket_ = {first.stream->deliver(result, tail, sizeof(AveragingResult), "averaging result"), result};
  if (alone) events_.front() = ticket_.done;
  ++rounds_;
  parity_ = 1 - parity_;
  return events_;
}

void Averager::average_alone(float alpha) {
  PerDevice& entry = devices_.front();
  entry.stream->enqueue(
      engine::LocalAveraging{entry.replicas, entry.central[parity_].as<float>(), entry.central[1 - parity_].as<float>(),
                             entry.sum.as<float>() + elements_, alpha, options_.central_momentum, elements_,
                             statistics_, mean_factor_},
      "averaging");
}

void Averager::average_together(float alpha) {
  for (std::size_t d = 0; d < devices_.size(); ++d) {
    PerDevice& entry = devices_[d];
    entry.stream->enqueue(engine::ReplicaDifference{entry.replicas, entry.central[parity_].as<float>(),
                                                    entry.sum.as<float>(), elements_, statistics_},
                          "averaging read");
    events_[d] = entry.stream->record();
  }
  collective_.all_reduce_sum(parts_, static_cast<std::size_t>(elements_ + engine::kAveragingTail), "all-reduce");
  for (PerDevice& entry : devices_) {
    entry.stream->enqueue(engine::CentralUpdate{entry.central[parity_].as<float>(),
                                                entry.central[1 - parity_].as<float>(), entry.sum.as<float>(), alpha,
                                                options_.central_momentum, elements_, statistics_, mean_factor_},
                          "central update");
  }
}

std::span<const engine::Event> Averager::restart(std::span<const std::vector<engine::Event>> updated) {
  for (std::size_t d = 0; d < devices_.size(); ++d) {
    PerDevice& entry = devices_[d];
    for (const engine::Event& event : updated[d]) entry.stream->wait(event, "wait for updated replicas");
    entry.stream->copy(entry.central[1 - parity_].data(), entry.central[parity_].data(), vector_bytes(),
                       "restart central momentum");
    events_[d] = entry.stream->record();
  }
  return events_;
}

engine::Event Averager::move_average(int device, float* average, float weight, engine::BFloat16* rounded) {
  PerDevice& entry = at(device);
  entry.stream->enqueue(engine::MovingAverage{entry.central[parity_].as<float>(), average, weight, elements_},
                        "moving average");
  if (rounded != nullptr) {
    entry.stream->enqueue(engine::RoundWeights{average, rounded, elements_}, "round moving average");
  }
  return entry.stream->record();
}

void Averager::wait(const engine::Event& event) { collective_.wait(event); }

void Averager::drain() noexcept {
  for (PerDevice& entry : devices_) {
    try {
      wait(entry.stream->record());
    } catch (const std::exception&) {
      // Whoever asks for a result is told; the next one is to find that it waits for nobody.
    }
  }
  for (PerDevice& entry : devices_) entry.stream->drain();
}

}  // namespace arbalest::sma
