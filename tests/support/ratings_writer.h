// Synthetic ratings, computed from user and item vectors, biases, a mean, and noise. The noise limits how well any
// model can predict them.
#pragma once

#include <cmath>
#include <cstdint>
#include <filesystem>
#include <numbers>
#include <random>
#include <string>
#include <vector>

#include "tests/support/npy_writer.h"
#include "tests/support/temporary_directory.h"

namespace arbalest::tests {

// The sizes in configs/matrix-factorization-ratings.txtpb.
inline constexpr int kRatingUsers = 200;
inline constexpr int kRatingItems = 120;
inline constexpr int kRatingRank = 4;
inline constexpr int kTrainingRatings = 12'000;
inline constexpr int kTestRatings = 3'000;
inline constexpr double kRatingNoise = 0.25;  // standard deviation; no model predicts better on average

namespace detail {

// Normally distributed numbers, the same on every machine up to rounding.
class Gaussian {
 public:
  double next(double stddev) {
    const double u = (static_cast<double>(generator_()) + 1.0) / 4294967297.0;
    const double v = static_cast<double>(generator_()) / 4294967296.0;
    return stddev * std::sqrt(-2.0 * std::log(u)) * std::cos(2.0 * std::numbers::pi * v);
  }
  std::vector<double> values(int count, double stddev) {
    std::vector<double> all;
    for (int i = 0; i < count; ++i) all.push_back(next(stddev));
    return all;
  }
  std::uint32_t below(std::uint32_t bound) { return static_cast<std::uint32_t>(generator_()) % bound; }

 private:
  std::mt19937 generator_{1};
};

template <typename T>
void append(std::string& content, T value) {
  content.append(reinterpret_cast<const char*>(&value), sizeof(value));
}

}  // namespace detail

// Writes train_ids.npy, train_targets.npy, test_ids.npy and test_targets.npy. Each pair of user and item occurs at most
// once.
inline void write_ratings(const std::filesystem::path& directory) {
  detail::Gaussian random;
  const std::vector<double> users = random.values(kRatingUsers * kRatingRank, 0.6);
  const std::vector<double> items = random.values(kRatingItems * kRatingRank, 0.6);
  const std::vector<double> user_biases = random.values(kRatingUsers, 0.3);
  const std::vector<double> item_biases = random.values(kRatingItems, 0.3);
  std::vector<std::uint32_t> pairs(std::size_t{kRatingUsers} * kRatingItems);
  for (std::uint32_t i = 0; i < pairs.size(); ++i) pairs[i] = i;
  for (auto left = static_cast<std::uint32_t>(pairs.size()); left > 1; --left) {
    std::swap(pairs[left - 1], pairs[random.below(left)]);
  }
  std::filesystem::create_directories(directory);
  std::size_t next = 0;
  for (const auto& [split, count] : {std::pair("train", kTrainingRatings), std::pair("test", kTestRatings)}) {
    std::string ids;
    std::string targets;
    for (int n = 0; n < count; ++n) {
      const std::size_t user = pairs[next] / kRatingItems;
      const std::size_t item = pairs[next++] % kRatingItems;
      double rating = 3.5 + user_biases[user] + item_biases[item] + random.next(kRatingNoise);
      for (std::size_t r = 0; r < kRatingRank; ++r) {
        rating += users[user * kRatingRank + r] * items[item * kRatingRank + r];
      }
      detail::append(ids, static_cast<std::int32_t>(user));
      detail::append(ids, static_cast<std::int32_t>(item));
      detail::append(targets, static_cast<float>(rating));
    }
    const std::string name = split;
    write_text(directory / (name + "_ids.npy"), npy("<i4", std::to_string(count) + ", 2", ids));
    write_text(directory / (name + "_targets.npy"), npy("<f4", std::to_string(count) + ",", targets));
  }
}

}  // namespace arbalest::tests
