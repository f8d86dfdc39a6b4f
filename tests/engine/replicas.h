// Replicas for tests of model averaging, and sums in the required order.
#pragma once

#include <bit>
#include <cstddef>
#include <span>
#include <vector>

#include "tests/engine/operator_run.h"
#include "tests/support/device_memory.h"
#include "tests/support/numbers.h"

namespace arbalest::tests {

inline void run_averaging(engine::Device& device, const engine::FlatTask& task, int threads) {
  const auto stream =
      device.create_stream({.name = "averaging", .threads = threads, .role = engine::StreamRole::kSynchronization});
  stream->enqueue(task, "averaging");
  stream->record().synchronize();
}

// Sums in the order of the pairwise tree in engine/passes/averaging.h.
inline float tree_sum(std::span<const float> values) {
  if (values.size() == 1) return values[0];
  const std::size_t half = std::bit_ceil(values.size()) / 2;
  return tree_sum(values.first(half)) + tree_sum(values.subspan(half));
}

struct Replicas {
  // Fills all vectors with small integers, so that sums and squares are exact in float32.
  Replicas(std::int64_t count, std::int64_t size) : elements(size), central(static_cast<std::size_t>(size)) {
    for (std::int64_t j = 0; j < count; ++j) {
      Floats replica;
      for (std::int64_t i = 0; i < size; ++i) replica.push_back(static_cast<float>((i * (j + 3) + j) % 15 - 7));
      replicas.push_back(replica);
    }
    for (std::size_t i = 0; i < central.size(); ++i) central[i] = static_cast<float>(static_cast<int>(i % 5) - 2);
  }

  // Returns uniform random numbers in [-1, 1), so that sums depend on their order.
  static Replicas random(std::int64_t count, std::int64_t size) {
    Replicas made(0, size);
    made.central = random_floats(size, 1000);
    for (std::int64_t j = 0; j < count; ++j) made.replicas.push_back(random_floats(size, static_cast<unsigned>(j)));
    return made;
  }

  std::int64_t elements;
  std::vector<Floats> replicas;
  Floats central;
};

// The replicas in device memory.
struct UploadedReplicas {
  UploadedReplicas(engine::Device& device, const Replicas& of) : central(upload(device, of.central)) {
    for (const Floats& replica : of.replicas) {
      replicas.push_back(upload(device, replica));
      addresses.push_back(replicas.back().as<const float>());
    }
  }

  std::vector<engine::Buffer> replicas;
  std::vector<const float*> addresses;
  engine::Buffer central;
};

// Returns S followed by its tail.
inline Floats replica_difference(const Replicas& of, int threads) {
  const auto device = open_test_device();
  const UploadedReplicas there(*device, of);
  const auto size = static_cast<std::size_t>(of.elements + engine::kAveragingTail);
  const engine::Buffer sum = upload(*device, Floats(size, 99.0F));
  run_averaging(*device,
                engine::ReplicaDifference{there.addresses, there.central.as<float>(), sum.as<float>(), of.elements},
                threads);
  return download<float>(*device, sum.data(), size);
}

}  // namespace arbalest::tests
