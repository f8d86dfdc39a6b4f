// Made-up ratings of low rank: inner products of random vectors of users and items, biases, a mean, and noise. Some
// users and items have many more ratings than others, as in MovieLens.
#pragma once

#include <cmath>
#include <cstddef>
#include <cstdint>
#include <set>
#include <utility>
#include <vector>

#include "scheduler/sparse/hogwild_factorization.h"
#include "tests/support/ratings_writer.h"

namespace arbalest::tests {

struct RatingsSize {
  std::int32_t users = 943;  // the default sizes are those of MovieLens-100k
  std::int32_t items = 1682;
  std::size_t training = 90'000;
  std::size_t test = 10'000;
  int rank = 8;
  double noise = 0.25;  // standard deviation; no model predicts better on average
};

struct MadeUpRatings {
  std::vector<scheduler::Rating> training;
  std::vector<scheduler::Rating> test;
};

// No pair of user and item occurs twice. There must be many more pairs than ratings.
inline MadeUpRatings make_ratings(const RatingsSize& size) {
  detail::Gaussian random;
  const double stddev = std::pow(static_cast<double>(size.rank), -0.25);  // of inner products: 1
  const std::vector<double> users = random.values(size.users * size.rank, stddev);
  const std::vector<double> items = random.values(size.items * size.rank, stddev);
  const std::vector<double> user_biases = random.values(size.users, 0.3);
  const std::vector<double> item_biases = random.values(size.items, 0.3);
  const auto below = [&](std::int32_t bound) {  // low numbers are more frequent
    const double share = static_cast<double>(random.below(1U << 24U)) / static_cast<double>(1U << 24U);
    return static_cast<std::int32_t>(std::pow(share, 1.5) * bound);
  };
  std::set<std::pair<std::int32_t, std::int32_t>> taken;
  MadeUpRatings ratings;
  while (taken.size() < size.training + size.test) {
    const auto [pair, is_new] = taken.emplace(below(size.users), below(size.items));
    if (!is_new) continue;
    const auto user = static_cast<std::size_t>(pair->first);
    const auto item = static_cast<std::size_t>(pair->second);
    double value = 3.5 + user_biases[user] + item_biases[item] + random.next(size.noise);
    for (std::size_t r = 0; r < static_cast<std::size_t>(size.rank); ++r) {
      value +=
          users[user * static_cast<std::size_t>(size.rank) + r] * items[item * static_cast<std::size_t>(size.rank) + r];
    }
    auto& split = ratings.training.size() < size.training ? ratings.training : ratings.test;
    split.push_back({pair->first, pair->second, static_cast<float>(value)});
  }
  return ratings;
}

// A start for training: small random vectors, no biases, and the mean rating.
inline scheduler::FactorizationModel make_factorization(const RatingsSize& size, std::int64_t width, float mean) {
  scheduler::FactorizationModel model{size.users, size.items, width, {}};
  detail::Gaussian random;
  for (std::size_t i = 0; i < model.mean(); ++i) {
    const bool is_bias = i % model.row() + 1 == model.row();
    model.weights.push_back(is_bias ? 0.0F : static_cast<float>(random.next(0.1)));
  }
  model.weights.push_back(mean);
  return model;
}

}  // namespace arbalest::tests
