// The server of asynchronous SGD against a plain reference in double precision.
#include "sma/parameter_server.h"

#include <algorithm>
#include <cmath>
#include <limits>
#include <optional>
#include <random>
#include <vector>

#include "engine/backends/devices.h"
#include "sma/synchronizer.h"
#include "tests/support/catch.h"
#include "tests/support/reference_update.h"
#include "tests/support/schemes.h"

namespace {

using namespace arbalest;

constexpr std::int64_t kTrainable = 48;
constexpr std::int64_t kStatistics = 16;
constexpr int kLearners = 3;

// A server on a CPU device, whose weights are the numbers 1, 2 ...
class Server {
 public:
  explicit Server(const engine::UpdateRule& rule, int mini_batches)
      : device_(engine::open_device(engine::parse_device("cpu"))),
        stream_(device_->create_stream({.name = "server", .role = engine::StreamRole::kSynchronization})),
        weights_(device_->allocate(kSizes.elements * sizeof(float))),
        gradient_(device_->allocate(kSizes.elements * sizeof(float))),
        scale_(device_->allocate(sizeof(float))),
        server_(
            *device_, *stream_, kSizes,
            {.rule = rule,
             .ranges = {{.begin = 0, .end = 16},
                        {.begin = 16, .end = kTrainable, .learning_rate_multiplier = 2.0F, .decay_multiplier = 0.5F},
                        {.begin = kTrainable, .end = kSizes.elements, .statistic_momentum = 0.25F}},
             .learners = kLearners}) {
    for (std::int64_t i = 0; i < kSizes.elements; ++i) weights()[i] = 0.1F * static_cast<float>(i + 1);
    server_.restart(weights(), mini_batches);
  }

  float* weights() const { return weights_.as<float>(); }
  float* gradient() const { return gradient_.as<float>(); }
  sma::ParameterServer& server() { return server_; }

  void push(std::size_t learner, float rate, const float* scale = nullptr) {
    if (scale != nullptr) *scale_.as<float>() = *scale;
    server_
        .push({.learner = learner,
               .gradient = gradient(),
               .statistics = gradient(),
               .gradient_scale = scale == nullptr ? nullptr : scale_.as<float>(),
               .learning_rate = rate})
        .synchronize();
  }

  static inline const sma::CentralSizes kSizes{.elements = kTrainable + kStatistics, .statistics = kStatistics};

 private:
  std::unique_ptr<engine::Device> device_;
  std::unique_ptr<engine::Stream> stream_;
  engine::Buffer weights_;
  engine::Buffer gradient_;
  engine::Buffer scale_;
  sma::ParameterServer server_;
};

// The rule whose decay counts for each of `mini_batches`, if it is part of the gradient.
engine::UpdateRule summed(engine::UpdateRule rule, int mini_batches) {
  if (auto* sgd = std::get_if<engine::Sgd>(&rule)) sgd->weight_decay *= static_cast<float>(mini_batches);
  if (auto* rms = std::get_if<engine::RmsProp>(&rule)) rms->weight_decay *= static_cast<float>(mini_batches);
  if (auto* adagrad = std::get_if<engine::Adagrad>(&rule)) adagrad->weight_decay *= static_cast<float>(mini_batches);
  return rule;
}

}  // namespace

TEST_CASE("a server takes the optimizer's steps in the order of the pushes", "[async]") {
  for (const engine::UpdateRule& rule :
       {engine::UpdateRule(engine::Sgd{.momentum = 0.9F, .weight_decay = 0.1F}),
        engine::UpdateRule(engine::Sgd{.momentum = 0.9F, .nesterov = true}), engine::UpdateRule(engine::Sgd{}),
        engine::UpdateRule(engine::RmsProp{.momentum = 0.5F, .weight_decay = 0.1F}),
        engine::UpdateRule(engine::AdamW{.weight_decay = 0.1F}),
        engine::UpdateRule(engine::Adagrad{.epsilon = 1e-3F, .weight_decay = 0.1F})}) {
    for (const int mini_batches : {1, 4}) {
      CAPTURE(rule.index(), mini_batches);
      Server server(rule, mini_batches);
      tests::ReferenceUpdate reference(summed(rule, mini_batches), kTrainable);
      std::vector<double> expected(server.weights(), server.weights() + Server::kSizes.elements);
      std::mt19937 random(7);
      std::normal_distribution<float> numbers;
      for (int step = 0; step < 12; ++step) {
        const float rate = 0.01F / static_cast<float>(1 + step % 3);
        const float scale = 0.5F;
        const bool is_scaled = step % 4 == 1;
        for (std::int64_t i = 0; i < Server::kSizes.elements; ++i) server.gradient()[i] = numbers(random);
        reference.begin_step();
        for (std::int64_t i = 0; i < kTrainable; ++i) {
          const auto at = static_cast<std::size_t>(i);
          const double g = static_cast<double>(server.gradient()[i]) * (is_scaled ? 0.5 : 1.0);
          const double multiplier = i < 16 ? 1.0 : 2.0;
          expected[at] +=
              reference.move(at, expected[at], g, static_cast<double>(rate) * multiplier, i < 16 ? 1.0 : 0.5);
        }
        for (std::int64_t i = kTrainable; i < Server::kSizes.elements; ++i) {
          double& statistic = expected[static_cast<std::size_t>(i)];
          statistic += 0.25 * (static_cast<double>(server.gradient()[i]) - statistic);
        }
        server.push(static_cast<std::size_t>(step) % kLearners, rate, is_scaled ? &scale : nullptr);
        CHECK(server.server().refused(static_cast<std::size_t>(step) % kLearners) == 0);
      }
      CHECK(server.server().steps() == 12);
      for (std::int64_t i = 0; i < Server::kSizes.elements; ++i) {
        CHECK(static_cast<double>(server.weights()[i]) ==
              Approx(expected[static_cast<std::size_t>(i)]).epsilon(1e-5).margin(1e-6));
      }
    }
  }
}

TEST_CASE("a server refuses a gradient that is not finite as a whole, and says whose it was", "[async]") {
  for (const std::int64_t bad : {std::int64_t{3}, kTrainable + 2}) {
    Server server(engine::Sgd{.momentum = 0.9F}, 1);
    std::fill_n(server.gradient(), Server::kSizes.elements, 1.0F);
    server.push(0, 0.1F);
    const std::vector<float> before(server.weights(), server.weights() + Server::kSizes.elements);
    server.gradient()[bad] = std::numeric_limits<float>::quiet_NaN();
    server.push(2, 0.1F);
    CHECK(std::equal(before.begin(), before.end(), server.weights()));
    CHECK(server.server().refused(0) == 0);
    CHECK(server.server().refused(2) == 1);
    server.gradient()[bad] = 1.0F;
    server.push(2, 0.1F);
    CHECK(server.server().refused(2) == 0);
    CHECK_FALSE(std::equal(before.begin(), before.end(), server.weights()));
  }
}

TEST_CASE("of several processes each takes memory for its shard of the server's state", "[async][memory]") {
  const auto device = engine::open_device(engine::parse_device("cpu"));
  engine::Device* const devices[] = {device.get()};
  constexpr std::int64_t kElements = 1 << 20;
  sma::SynchronizerNeeds needs{
      .schemes = {tests::async_sgd(std::nullopt)}, .most_learners = 4, .rule = engine::AdamW{}};
  const auto bytes = [&] { return sma::Synchronizer::device_bytes(needs, devices, {.elements = kElements}).front(); };
  const std::size_t alone = bytes();
  needs.processes = 4;
  CHECK(alone - bytes() == 2 * sizeof(float) * kElements * 3 / 4);  // AdamW has two vectors
}
