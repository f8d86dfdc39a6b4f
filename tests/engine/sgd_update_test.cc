#include "engine/ops/sgd_update.h"

#include <cmath>
#include <limits>

#include "engine/elementwise/bfloat16.h"
#include "tests/engine/operator_run.h"
#include "tests/support/catch.h"
#include "tests/support/device_memory.h"
#include "tests/support/numbers.h"

namespace arbalest::tests {
namespace {

using engine::Buffer;
using engine::SgdUpdate;
using engine::StepParameters;
using engine::UpdateRange;

constexpr std::int64_t kElements = 1003;  // not a multiple of any vector

Floats random_floats(std::int64_t count, unsigned seed) {
  Floats floats;
  for (const double value : random_values(count, seed)) floats.push_back(static_cast<float>(value));
  return floats;
}

struct Vectors {
  Floats weights = random_floats(kElements, 1);
  Floats momentum = random_floats(kElements, 2);
  Floats gradient = random_floats(kElements, 3);
  Floats central[2] = {random_floats(kElements, 4), random_floats(kElements, 5)};
  std::vector<UpdateRange> ranges = {{0, 500, 1.0F, 1.0F}, {500, 700, 2.0F, 0.0F}, {700, kElements, 0.5F, 3.0F}};
  StepParameters step = {.learning_rate = 0.05F, .alpha = 0.25F, .parity = 1};
  std::int32_t non_finite = -1;
  std::vector<std::uint16_t> rounded = std::vector<std::uint16_t>(kElements, 0x4141);  // bits
  bool wants_rounded = true;

  // One step of `threads` threads on a stream of its own.
  void run(bool averaged, int threads = 1) {
    const auto device = open_test_device();
    const Buffer weights_there = upload(*device, weights);
    const Buffer momentum_there = upload(*device, momentum);
    const Buffer gradient_there = upload(*device, gradient);
    const Buffer central_there[2] = {upload(*device, central[0]), upload(*device, central[1])};
    const Buffer step_there = upload(*device, std::vector{step});
    const Buffer count_there = upload(*device, std::vector{non_finite});
    const Buffer rounded_there = upload(*device, rounded);
    SgdUpdate task;
    task.weights = weights_there.as<float>();
    task.momentum = momentum_there.as<float>();
    task.gradient = gradient_there.as<float>();
    if (wants_rounded) task.rounded = rounded_there.as<engine::BFloat16>();
    if (averaged) {
      task.central[0] = central_there[0].as<float>();
      task.central[1] = central_there[1].as<float>();
    }
    task.ranges = ranges;
    task.momentum_factor = 0.9F;
    task.weight_decay = 0.01F;
    task.step = step_there.as<StepParameters>();
    task.non_finite = count_there.as<std::int32_t>();
    const auto stream = device->create_stream({"test", threads});
    stream->enqueue(task, "update");
    stream->record().synchronize();
    weights = download<float>(*device, weights_there.data(), weights.size());
    momentum = download<float>(*device, momentum_there.data(), momentum.size());
    rounded = download<std::uint16_t>(*device, rounded_there.data(), rounded.size());
    non_finite = download<std::int32_t>(*device, count_there.data(), 1)[0];
  }
};

std::vector<std::uint16_t> rounded_bits(const Floats& values) {
  std::vector<std::uint16_t> bits;
  for (const float value : values) bits.push_back(engine::elementwise::to_bfloat16(value).bits);
  return bits;
}

// The design's formulas, one element at a time.
struct Expected {
  Values weights;
  Values momentum;
};
Expected scalar_step(const Vectors& of, bool averaged) {
  Expected expected;
  for (const UpdateRange& range : of.ranges) {
    const double rate =
        static_cast<double>(of.step.learning_rate) * static_cast<double>(range.learning_rate_multiplier);
    const double decay = static_cast<double>(0.01F) * static_cast<double>(range.decay_multiplier);
    for (auto i = static_cast<std::size_t>(range.begin); i < static_cast<std::size_t>(range.end); ++i) {
      const double w = of.weights[i];
      const double g = of.gradient[i] + decay * w;
      const double c = averaged ? of.step.alpha * (w - of.central[of.step.parity][i]) : 0.0;
      const double v = static_cast<double>(0.9F) * of.momentum[i] - rate * g;
      expected.momentum.push_back(v);
      expected.weights.push_back(w + v - c);
    }
  }
  return expected;
}

TEST_CASE("an SGD step follows the formulas, with multipliers of each range") {
  const bool averaged = GENERATE(false, true);
  const int threads = GENERATE(1, 3);
  Vectors vectors;
  vectors.step.parity = GENERATE(0U, 1U);
  const Expected expected = scalar_step(vectors, averaged);
  vectors.run(averaged, threads);
  CHECK(relative_error(vectors.weights, expected.weights) < 1e-6);
  CHECK(relative_error(vectors.momentum, expected.momentum) < 1e-6);
  CHECK(vectors.non_finite == 0);
}

TEST_CASE("an SGD step leaves the new weights in low precision, too, where that is wanted") {
  const bool averaged = GENERATE(false, true);
  const int threads = GENERATE(1, 3);
  Vectors vectors;
  if (averaged) vectors.step.alpha = GENERATE(0.0F, 0.25F);
  Vectors without = vectors;
  without.wants_rounded = false;
  without.run(averaged, threads);
  CHECK(without.rounded == std::vector<std::uint16_t>(kElements, 0x4141));
  vectors.run(averaged, threads);
  CHECK(vectors.weights == without.weights);
  CHECK(vectors.rounded == rounded_bits(vectors.weights));
}

TEST_CASE("an SGD step gives the same bits for any number of threads") {
  Vectors one;
  Vectors three;
  one.run(true, 1);
  three.run(true, 3);
  CHECK(one.weights == three.weights);
  CHECK(one.momentum == three.momentum);
}

TEST_CASE("elements outside the ranges stay as they are") {
  Vectors vectors;
  vectors.ranges = {{600, 900, 1.0F, 1.0F}, {10, 20, 1.0F, 1.0F}};
  const Vectors before = vectors;
  vectors.run(true, 3);
  for (std::size_t i = 0; i < kElements; ++i) {
    const bool inside = (i >= 600 && i < 900) || (i >= 10 && i < 20);
    if ((vectors.weights[i] != before.weights[i]) != inside) FAIL("element " << i);
    if ((vectors.rounded[i] != before.rounded[i]) != inside) FAIL("element " << i << " in low precision");
  }
}

TEST_CASE("a step over fewer elements than threads") {
  const bool averaged = GENERATE(false, true);
  Vectors vectors;
  vectors.ranges = {{0, 1, 1.0F, 1.0F}};
  const Vectors before = vectors;
  const Expected expected = scalar_step(vectors, averaged);
  vectors.run(averaged, 3);
  CHECK(relative_error(Floats{vectors.weights[0]}, expected.weights) < 1e-6);
  CHECK(std::equal(vectors.weights.begin() + 1, vectors.weights.end(), before.weights.begin() + 1));
}

TEST_CASE("alpha = 0 is a local step: the central model is not read") {
  Vectors vectors;
  vectors.step.alpha = 0.0F;
  for (Floats& central : vectors.central) central.assign(kElements, std::numeric_limits<float>::quiet_NaN());
  const Expected expected = scalar_step(vectors, false);
  vectors.run(true);
  CHECK(relative_error(vectors.weights, expected.weights) < 1e-6);
  CHECK(vectors.non_finite == 0);
}

TEST_CASE("without averaging a gradient that is not finite, or absurdly large, is refused as a whole") {
  const float bad = GENERATE(std::numeric_limits<float>::quiet_NaN(), std::numeric_limits<float>::infinity(),
                             -std::numeric_limits<float>::infinity(), 1e20F, -1e20F);
  const int threads = GENERATE(1, 3);
  Vectors vectors;
  vectors.gradient[0] = bad;
  vectors.gradient[640] = bad;
  vectors.gradient[kElements - 1] = bad;
  const Vectors before = vectors;
  vectors.run(false, threads);
  CHECK(vectors.weights == before.weights);
  CHECK(vectors.momentum == before.momentum);
  CHECK(vectors.rounded == before.rounded);
  CHECK(vectors.non_finite == 3);
}

TEST_CASE("the learning rate counts in what is refused") {
  Vectors vectors;
  vectors.gradient[3] = 1e19F;  // times 0.05: below 1e18
  vectors.run(false);
  CHECK(vectors.non_finite == 0);
  vectors.gradient[3] = 1e19F;
  vectors.step.learning_rate = 0.5F;
  vectors.run(false);
  CHECK(vectors.non_finite == 1);
}

TEST_CASE("a flat vector is rounded, all of it and nothing more") {
  const std::int64_t elements = GENERATE(1, 17, 70001);
  const int threads = GENERATE(1, 3);
  const auto device = open_test_device();
  const Floats weights = random_floats(elements, 7);
  const Buffer weights_there = upload(*device, weights);
  const auto count = static_cast<std::size_t>(elements);
  const Buffer rounded_there = upload(*device, std::vector<std::uint16_t>(count + 3, 0x4141));
  const auto stream = device->create_stream({"test", threads});
  stream->enqueue(engine::RoundWeights{weights_there.as<float>(), rounded_there.as<engine::BFloat16>(), elements},
                  "round");
  stream->record().synchronize();
  std::vector<std::uint16_t> expected = rounded_bits(weights);
  expected.resize(count + 3, 0x4141);
  CHECK(download<std::uint16_t>(*device, rounded_there.data(), count + 3) == expected);
}

TEST_CASE("with averaging, weights left non-finite are counted") {
  const float alpha = GENERATE(0.0F, 0.25F);
  Vectors vectors;
  vectors.step.alpha = alpha;
  vectors.gradient[5] = std::numeric_limits<float>::quiet_NaN();
  vectors.gradient[900] = -std::numeric_limits<float>::infinity();
  vectors.run(true);
  CHECK(vectors.non_finite == 2);
  CHECK(std::isnan(vectors.weights[5]));
  CHECK(std::isinf(vectors.weights[900]));
}

}  // namespace
}  // namespace arbalest::tests
