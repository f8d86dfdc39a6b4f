// Properties of the schemes: permuting learners changes nothing but rounding, a convex average stays between the
// replicas, and equal replicas act as one.
#include <algorithm>
#include <array>
#include <memory>
#include <optional>

#include "sma/outer_update.h"
#include "tests/support/catch.h"
#include "tests/support/device_lists.h"
#include "tests/support/scheme_rig.h"
#include "tests/support/weights.h"

namespace {

using namespace arbalest;
using tests::device_lists;
using tests::RigOptions;
using tests::SchemeCase;
using tests::TrainingRig;

using Vector = std::vector<float>;

constexpr std::int64_t kElements = 300;
constexpr int kRounds = 5;

Vector random_vector(std::uint64_t seed, std::uint64_t number, float spread) {
  dataflow::RandomSequence random(seed, 5, number);
  Vector values(kElements);
  for (float& value : values) value = spread * (static_cast<float>(random.next() >> 40U) * 0x1.0p-23F - 1.0F);
  return values;
}

// The central model of synthetic replicas, with counts[d] of them on device d.
class Averaged {
 public:
  Averaged(const sma::Options& options, const std::vector<std::string>& devices, const std::vector<int>& counts)
      : options_(options), collective_(engine::make_memory_collective(static_cast<int>(devices.size()))) {
    int count = 0;
    std::vector<engine::Device*> pointers;
    for (const std::string& name : devices) {
      devices_.push_back(engine::open_device(engine::parse_device(name)));
      pointers.push_back(devices_.back().get());
    }
    for (const int of_device : counts) {
      ready_.emplace_back(static_cast<std::size_t>(of_device));
      count += of_device;
    }
    weights_.assign(static_cast<std::size_t>(count), Vector(kElements));
    const bool reduces = options.scheme == sma::Scheme::kSSgd;
    central_.emplace(pointers, sma::CentralSizes{.elements = kElements},
                     sma::CentralVectors{.velocity = options.nesterov, .gradient = reduces}, *collective_, kRounds + 1);
    update_.emplace(options_, count);
    std::vector<sma::ReplicaVectors> replicas;
    std::size_t j = 0;
    for (const auto& of_device : ready_) {
      sma::ReplicaVectors& vectors = replicas.emplace_back();
      for (std::size_t i = 0; i < of_device.size(); ++i, ++j) {
        vectors.weights.push_back(weights_[j].data());
        vectors.gradients.push_back(weights_[j].data());
      }
    }
    central_->set_replicas(std::move(replicas), count);
  }

  void set_central(const Vector& z) {
    for (std::size_t d = 0; d < devices_.size(); ++d) central_->set(d, z.data());
  }

  // Averages `weights` and returns the new z.
  Vector average(const std::vector<Vector>& weights) {
    take(weights);
    update_->enqueue(*central_, ready_, 0.1F);
    central_->drain();
    const float* z = central_->present(0);
    return {z, z + kElements};
  }

  // Averages `gradients` in two parts, as s_sgd does.
  Vector mean_gradient(const std::vector<Vector>& gradients) {
    take(gradients);
    central_->average_gradients(kElements / 3, kElements);
    central_->average_gradients(0, kElements / 3);
    central_->drain();
    const float* mean = central_->gradient(0);
    return {mean, mean + kElements};
  }

 private:
  void take(const std::vector<Vector>& vectors) {
    for (std::size_t j = 0; j < weights_.size(); ++j) std::ranges::copy(vectors[j], weights_[j].begin());
  }

  sma::Options options_;
  std::vector<std::unique_ptr<engine::Device>> devices_;
  std::unique_ptr<engine::Collective> collective_;
  std::vector<Vector> weights_;
  std::vector<std::vector<engine::Event>> ready_;
  std::optional<sma::CentralModel> central_;
  std::optional<sma::OuterUpdate> update_;
};

// Counts the elements of `z` outside the range from the vectors' elementwise minimum to maximum, beyond rounding.
int outside(const Vector& z, const std::vector<Vector>& vectors) {
  constexpr float kRounding = 1e-6F;
  int count = 0;
  for (std::size_t i = 0; i < z.size(); ++i) {
    float low = vectors.front()[i];
    float high = low;
    for (const Vector& vector : vectors) {
      low = std::min(low, vector[i]);
      high = std::max(high, vector[i]);
    }
    count += z[i] < low - kRounding || z[i] > high + kRounding ? 1 : 0;
  }
  return count;
}

// Counts over several rounds how often an element of z leaves the range of the replicas. With `counts_central`, the
// range includes the old z.
int times_outside(const sma::Options& options, int replicas, bool counts_central) {
  Averaged averaged(options, {"cpu"}, {replicas});
  Vector z = random_vector(1, 0, 1.0F);
  averaged.set_central(z);
  int count = 0;
  for (std::uint64_t round = 1; round <= kRounds; ++round) {
    std::vector<Vector> weights;
    for (int j = 0; j < replicas; ++j) weights.push_back(random_vector(round, static_cast<std::uint64_t>(j), 1.0F));
    const Vector next = averaged.average(weights);
    if (counts_central) weights.push_back(z);
    count += outside(next, weights);
    z = next;
  }
  return count;
}

std::vector<float> trained(const RigOptions& options, int iterations) {
  TrainingRig rig(options);
  rig.run(iterations);
  return tests::model_weights(rig);
}

double distance_of(const Vector& a, const Vector& b) {
  return tests::relative_distance({a.begin(), a.end()}, {b.begin(), b.end()});
}

// Makes the scheme assign the plain mean.
SchemeCase plain_mean(SchemeCase scheme) {
  scheme.options.outer_rate = 1.0F;
  scheme.options.momentum = 0.0F;
  return scheme;
}

}  // namespace

TEST_CASE("permuting replicas changes an average by rounding only", "[scheme]") {
  constexpr std::array<std::size_t, 5> kOther{3, 0, 4, 1, 2};
  for (const auto& devices : device_lists()) {
    const std::vector<int> counts = tests::spread(5, devices);
    for (const SchemeCase& scheme : tests::all_schemes()) {
      CAPTURE(scheme.name, devices.size());
      Averaged one(scheme.options, devices, counts);
      Averaged other(scheme.options, devices, counts);
      const Vector z = random_vector(1, 0, 1.0F);
      one.set_central(z);
      other.set_central(z);
      for (std::uint64_t round = 1; round <= kRounds; ++round) {
        std::vector<Vector> weights;
        std::vector<Vector> permuted;
        for (std::uint64_t j = 0; j < kOther.size(); ++j) weights.push_back(random_vector(round, j, 1.0F));
        for (const std::size_t j : kOther) permuted.push_back(weights[j]);
        const bool reduces = scheme.options.scheme == sma::Scheme::kSSgd;
        const Vector expected = reduces ? one.mean_gradient(weights) : one.average(weights);
        const Vector found = reduces ? other.mean_gradient(permuted) : other.average(permuted);
        CHECK(distance_of(found, expected) < 1e-6);
        CHECK(distance_of(expected, z) > 1e-2);
      }
    }
  }
}

TEST_CASE("permuting the mini-batches of a step among learners changes the model by rounding only", "[scheme]") {
  constexpr std::array<std::uint64_t, 3> kOther{2, 0, 1};
  for (const auto& devices : device_lists()) {
    for (const SchemeCase& scheme : tests::all_schemes()) {
      CAPTURE(scheme.name, devices.size());
      RigOptions options = tests::scheme_options(tests::spread(3, devices), devices);
      options.synchronization = scheme.with_period(3).options;
      const std::vector<float> expected = trained(options, 10);
      options.batch_of = [&](std::uint64_t n) { return n / 3 * 3 + kOther[n % 3]; };
      const std::vector<float> found = trained(options, 10);
      CHECK(distance_of(found, expected) < 1e-5);
      options.batch_of = [](std::uint64_t n) { return n + 3; };  // different mini-batches change the model
      CHECK(distance_of(trained(options, 10), expected) > 1e-4);
    }
  }
}

TEST_CASE("without momentum and with k a at most 1 the center stays in the range of the replicas", "[scheme]") {
  for (const int replicas : {2, 3, 4, 8}) {
    for (SchemeCase scheme : tests::all_schemes()) {
      if (scheme.options.scheme == sma::Scheme::kSSgd) continue;
      CAPTURE(scheme.name, replicas);
      scheme.options.momentum = 0.0F;
      const bool is_mean = scheme.options.rate_for(replicas) == 1.0F;  // the old central model has no weight
      REQUIRE(scheme.options.rate_for(replicas) <= 1.0F);
      CHECK(times_outside(scheme.options, replicas, !is_mean) == 0);
      // With momentum, or with a step beyond the mean, the central model leaves the range.
      scheme.options.momentum = 0.9F;
      CHECK(times_outside(scheme.options, replicas, true) > 0);
      scheme.options.momentum = 0.0F;
      scheme.options.outer_rate = 1.9F;
      if (scheme.options.assigns()) CHECK(times_outside(scheme.options, replicas, true) > 0);
    }
    Averaged gradients(tests::s_sgd_case().options, {"cpu"}, {replicas});
    std::vector<Vector> vectors;
    for (int j = 0; j < replicas; ++j) vectors.push_back(random_vector(9, static_cast<std::uint64_t>(j), 1.0F));
    CHECK(outside(gradients.mean_gradient(vectors), vectors) == 0);
  }
}

TEST_CASE("equal replicas train like one learner if the plain mean is assigned, and with s_sgd", "[scheme]") {
  const std::vector<SchemeCase> schemes = {tests::local_sgd_case(),
                                           tests::local_sgd_case(sma::LocalState::kZero),
                                           tests::local_sgd_case(sma::LocalState::kAverage),
                                           plain_mean(tests::bmuf_case(true)),
                                           plain_mean(tests::slow_mo_case()),
                                           plain_mean(tests::diloco_case()),
                                           plain_mean(tests::lookahead_case()),
                                           tests::swap_case(),
                                           tests::s_sgd_case(64)};
  const std::vector<engine::UpdateRule> rules = {engine::Sgd{.momentum = 0.9F, .weight_decay = 0.01F}, engine::AdamW{}};
  constexpr int kSteps = 14;
  for (const auto& devices : device_lists()) {
    for (const SchemeCase& scheme : schemes) {
      for (const engine::UpdateRule& rule : rules) {
        RigOptions one = tests::scheme_options({1});
        one.rule = rule;
        one.learning_rate.base = 0.02;
        one.synchronization = scheme.with_period(3).options;
        const std::vector<float> expected = trained(one, kSteps);
        for (const int each : {1, 2, 3}) {
          RigOptions options = one;
          options.devices = devices;
          options.learners = std::vector<int>(devices.size(), each);
          const std::uint64_t learners = devices.size() * static_cast<std::uint64_t>(each);
          options.batch_of = [learners](std::uint64_t n) { return n / learners; };
          CAPTURE(scheme.name, rule.index(), learners);
          const std::vector<float> found = trained(options, kSteps);
          CHECK(distance_of(found, expected) < 1e-5);
          // The mean of 2^n equal gradients is exact.
          const bool is_exact = scheme.options.scheme == sma::Scheme::kSSgd && (learners & (learners - 1)) == 0;
          if (is_exact) CHECK(tests::same_bytes(found, expected));
        }
      }
    }
  }
}
