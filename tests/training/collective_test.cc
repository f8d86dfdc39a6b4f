// All-reduce in memory and the central model over several devices: exact on integers, and no hang when a rank fails.
#include <limits>
#include <memory>

#include "engine/backends/devices.h"
#include "engine/base/error.h"
#include "engine/collective.h"
#include "engine/cpu/runtime/stream.h"
#include "engine/cpu/runtime/task.h"
#include "engine/host/topology.h"
#include "sma/outer_update.h"
#include "tests/support/catch.h"
#include "tests/support/skip.h"
#include "tests/support/training_rig.h"

namespace {

using namespace arbalest;
using engine::Event;

std::vector<std::unique_ptr<engine::Stream>> streams_of(engine::Device& device, int count) {
  std::vector<std::unique_ptr<engine::Stream>> streams;
  for (int i = 0; i < count; ++i) streams.push_back(device.create_stream({.name = "rank " + std::to_string(i)}));
  return streams;
}

std::vector<engine::CollectivePart> parts_of(const std::vector<std::unique_ptr<engine::Stream>>& streams,
                                             std::vector<std::vector<float>>& values) {
  std::vector<engine::CollectivePart> parts;
  for (std::size_t r = 0; r < streams.size(); ++r) parts.push_back({streams[r].get(), values[r].data()});
  return parts;
}

// Replicas with these weights, `per_device` on each device.
std::vector<sma::ReplicaVectors> replicas_of(const std::vector<std::vector<float>>& weights, std::size_t per_device) {
  std::vector<sma::ReplicaVectors> replicas(weights.size() / per_device);
  for (std::size_t j = 0; j < weights.size(); ++j) {
    replicas[j / per_device].weights.push_back(weights[j].data());
    replicas[j / per_device].gradients.push_back(nullptr);
  }
  return replicas;
}

}  // namespace

TEST_CASE("all-reduce sums over ranks, also when repeated", "[collective]") {
  for (const int ranks : {1, 2, 3, 5}) {
    for (const std::size_t elements : {std::size_t{1}, std::size_t{7}, std::size_t{5000}}) {
      CAPTURE(ranks, elements);
      const auto device = engine::open_device(engine::parse_device("cpu"));
      const auto collective = engine::make_memory_collective(ranks);
      std::vector<std::vector<float>> data(static_cast<std::size_t>(ranks), std::vector<float>(elements));
      const auto streams = streams_of(*device, ranks);
      for (int repetition = 0; repetition < 3; ++repetition) {
        for (std::size_t r = 0; r < data.size(); ++r) {
          for (std::size_t i = 0; i < elements; ++i) data[r][i] = static_cast<float>(i % 97 + 10 * r);
        }
        collective->all_reduce_sum(parts_of(streams, data), elements, "all-reduce");
        for (const auto& stream : streams) stream->record().synchronize();
        for (const std::vector<float>& values : data) {
          bool equal = true;
          for (std::size_t i = 0; i < elements; ++i) {
            equal = equal && values[i] == static_cast<float>(i % 97) * static_cast<float>(ranks) +
                                              5.0F * static_cast<float>(ranks * (ranks - 1));
          }
          CHECK(equal);
        }
      }
    }
  }
}

TEST_CASE("a failed rank fails its peers instead of leaving them waiting", "[collective]") {
  const auto device = engine::open_device(engine::parse_device("cpu"));
  const auto collective = engine::make_memory_collective(2);
  std::vector<std::vector<float>> data(2, std::vector<float>(8));
  const auto streams = streams_of(*device, 2);
  static_cast<engine::cpu::CpuStream&>(*streams[0])
      .submit(engine::cpu::make_task(
                  [](const engine::cpu::TaskContext&) { engine::fail(engine::ErrorKind::kDevice, "made to fail"); }),
              "broken task");
  collective->all_reduce_sum(parts_of(streams, data), 8, "all-reduce");
  CHECK_THROWS_WITH(streams[0]->record().synchronize(), ContainsSubstring("rank 0: broken task: made to fail"));
  CHECK_THROWS_WITH(streams[1]->record().synchronize(), ContainsSubstring("another device"));
}

TEST_CASE("a rank whose part cannot be enqueued fails its peers", "[collective]") {
  const auto device = engine::open_device(engine::parse_device("cpu"));
  const auto collective = engine::make_memory_collective(2);
  std::vector<std::vector<float>> data(2, std::vector<float>(8));
  const auto streams = streams_of(*device, 2);
  streams[1]->begin_recording();
  CHECK_THROWS_AS(collective->all_reduce_sum(parts_of(streams, data), 8, "all-reduce"), engine::Error);
  streams[1]->end_recording();
  CHECK_THROWS_WITH(streams[0]->record().synchronize(), ContainsSubstring("another device"));
}

TEST_CASE("averaging is exact on integers, over two devices", "[sma]") {
  const auto names = tests::two_devices(engine::host::allowed_cores());
  if (names.empty()) tests::skip_test("needs two cores");
  constexpr std::int64_t kElements = 1000;
  std::vector<std::unique_ptr<engine::Device>> owned;
  std::vector<engine::Device*> devices;
  for (const std::string& name : names) {
    owned.push_back(engine::open_device(engine::parse_device(name)));
    devices.push_back(owned.back().get());
  }
  const auto collective = engine::make_memory_collective(2);
  sma::Options options;
  options.momentum = 0.5F;
  sma::CentralModel model(devices, {.elements = kElements}, {}, *collective, 4);
  sma::OuterUpdate update(options, 4);

  // Four replicas, two on each device; alpha = 1/4 and mu = 1/2 are exact in binary.
  std::vector<std::vector<float>> weights(4, std::vector<float>(kElements));
  std::vector<float> central(kElements);
  for (std::size_t i = 0; i < central.size(); ++i) {
    central[i] = static_cast<float>(i % 13);
    for (std::size_t j = 0; j < weights.size(); ++j) {
      weights[j][i] = central[i] + static_cast<float>(4 * ((i + 3 * j) % 7));
    }
  }
  model.set_replicas(replicas_of(weights, 2), 4);
  for (std::size_t d = 0; d < 2; ++d) model.set(d, central.data());

  const std::vector<std::vector<Event>> ready(2, std::vector<Event>(2));
  std::vector<double> z(central.begin(), central.end());
  std::vector<double> previous = z;
  for (int round = 0; round < 3; ++round) {
    double squared_distance = 0.0;
    double squared_sum = 0.0;
    for (std::size_t i = 0; i < z.size(); ++i) {
      double sum = 0.0;
      for (const std::vector<float>& replica : weights) {
        const double difference = static_cast<double>(replica[i]) - z[i];
        sum += difference;
        squared_distance += difference * difference;
      }
      squared_sum += sum * sum;
      const double next = z[i] + 0.25 * sum + 0.5 * (z[i] - previous[i]);
      previous[i] = z[i];
      z[i] = next;
    }
    update.enqueue(model, ready, 0.1F);
    const sma::AveragingTicket ticket = model.ticket();
    ticket.done.synchronize();
    model.drain();
    CHECK(ticket.result->non_finite == 0.0F);
    CHECK(static_cast<double>(ticket.result->squared_distance) == Approx(squared_distance).epsilon(1e-5));
    CHECK(static_cast<double>(ticket.result->squared_sum) == Approx(squared_sum).epsilon(1e-5));
    for (std::size_t d = 0; d < 2; ++d) {
      const float* result = model.present(d);
      bool exact = true;
      for (std::size_t i = 0; i < z.size(); ++i) exact = exact && static_cast<double>(result[i]) == z[i];
      CHECK(exact);
    }
  }
}

TEST_CASE("a non-finite weight leaves the central model unchanged on every device", "[sma]") {
  const auto names = tests::two_devices(engine::host::allowed_cores());
  if (names.empty()) tests::skip_test("needs two cores");
  std::vector<std::unique_ptr<engine::Device>> owned;
  std::vector<engine::Device*> devices;
  for (const std::string& name : names) {
    owned.push_back(engine::open_device(engine::parse_device(name)));
    devices.push_back(owned.back().get());
  }
  const auto collective = engine::make_memory_collective(2);
  const sma::Options options;
  sma::CentralModel model(devices, {.elements = 4}, {}, *collective, 4);
  sma::OuterUpdate update(options, 2);
  const std::vector<float> central{1.0F, 2.0F, 3.0F, 4.0F};
  std::vector<std::vector<float>> weights(2, central);
  const bool infinite = GENERATE(true, false);
  if (infinite) {
    weights[1][2] = std::numeric_limits<float>::infinity();
  } else {
    weights[0][2] = weights[1][2] = 2e38F;  // finite on each device, but their sum is not
  }
  model.set_replicas(replicas_of(weights, 1), 2);
  for (std::size_t d = 0; d < 2; ++d) model.set(d, central.data());
  update.enqueue(model, std::vector<std::vector<Event>>(2, std::vector<Event>(1)), 0.1F);
  model.drain();
  CHECK(model.ticket().result->non_finite > 0.0F);
  for (std::size_t d = 0; d < 2; ++d) {
    const float* result = model.present(d);
    CHECK(std::vector<float>(result, result + 4) == central);
  }
}
