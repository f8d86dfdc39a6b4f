// Hogwild for matrix factorization with biases: stochastic gradient descent on single ratings by several threads, which
// share one vector without locks (Niu et al., NIPS 2011, section 5.2; the model: Koren et al., 2009).
//
// A step on the rating r of user u and item i, with the learning rate gamma and the weight decay lambda:
//   e = p_u q_i + b_u + c_i + m - r
//   p_u -= gamma (2 e q_i + lambda p_u)     q_i -= gamma (2 e p_u + lambda q_i)     (both from the old vectors)
//   b_u -= gamma (2 e + lambda b_u)         c_i -= gamma (2 e + lambda c_i)         m -= gamma 2 e
// Only the rows of u and i are read and written, by relaxed atomic operations, number by number. Two threads that write
// the same row at once may lose changes. Every rating changes m, so a thread adds its changes to the shared m only once
// in kMeanPeriod ratings.
//
// Threads that take turns on one row pass its cache line to and fro, which costs more than a step. So the ratings are
// divided into k x k blocks of users and items for k threads. Thread t takes the ratings of its own users, and begins
// with the t-th part of the items. No thread waits for another between blocks.
#pragma once

#include <atomic>
#include <cstddef>
#include <cstdint>
#include <span>
#include <vector>

namespace arbalest::scheduler {

struct Rating {
  std::int32_t user = 0;
  std::int32_t item = 0;
  float value = 0.0F;
};

// The weights lie in one vector: a row for each user and then for each item, of `width` numbers and a bias; then m.
struct FactorizationModel {
  std::int64_t users = 0;
  std::int64_t items = 0;
  std::int64_t width = 1;
  std::vector<float> weights;  // [(users + items) (width + 1) + 1]

  std::size_t row() const noexcept { return static_cast<std::size_t>(width) + 1; }
  std::size_t user_row(std::int64_t user) const noexcept { return static_cast<std::size_t>(user) * row(); }
  std::size_t item_row(std::int64_t item) const noexcept { return static_cast<std::size_t>(users + item) * row(); }
  std::size_t mean() const noexcept { return static_cast<std::size_t>(users + items) * row(); }
  std::size_t size() const noexcept { return mean() + 1; }
};

// The mean of the squared errors. `ratings` must not be empty.
double squared_error(const FactorizationModel& model, std::span<const Rating> ratings);

struct FactorizationOptions {
  float weight_decay = 0.0F;
  std::uint64_t seed = 1;  // of the order of the ratings
};

struct FactorizationEpoch {
  bool is_whole = true;      // false: a stop signal ended it early
  std::int64_t ratings = 0;  // trained
};

class HogwildFactorization {
 public:
  static constexpr int kMeanPeriod = 64;

  // Ratings are numbered as in `model`, whose vector is the start. `cores`: by thread, the cores that it is pinned to;
  // empty: it floats.
  HogwildFactorization(std::span<const Rating> ratings, FactorizationModel model, const FactorizationOptions& options,
                       std::vector<std::vector<int>> cores);

  // Trains on every rating once, in an order that depends on the seed, the number of threads and all epochs so far.
  // Epochs are numbered from 0. `stop_signal` (or null) becomes non-zero to end the epoch early.
  FactorizationEpoch epoch(std::uint64_t number, float learning_rate, const std::atomic<int>* stop_signal = nullptr);

  const FactorizationModel& model() const noexcept { return model_; }

 private:
  class Worker;

  FactorizationModel model_;
  FactorizationOptions options_;
  std::vector<std::vector<int>> cores_;
  std::vector<std::vector<Rating>> blocks_;  // block (t, b) is number t * threads + b
};

}  // namespace arbalest::scheduler
