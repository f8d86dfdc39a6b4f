// Hogwild for matrix factorization against sequential stochastic gradient descent.
#include "scheduler/sparse/hogwild_factorization.h"

#include <algorithm>
#include <atomic>
#include <cmath>
#include <utility>
#include <vector>

#include "dataflow/input/batches/random_sequence.h"
#include "scheduler/sparse/order_streams.h"
#include "tests/support/catch.h"
#include "tests/support/made_up_ratings.h"

namespace {

using namespace arbalest;
using scheduler::FactorizationEpoch;
using scheduler::FactorizationModel;
using scheduler::HogwildFactorization;
using scheduler::Rating;

std::vector<std::vector<int>> floating(int threads) {
  return std::vector<std::vector<int>>(static_cast<std::size_t>(threads));
}

// Plain stochastic gradient descent in double precision on the weights of a FactorizationModel.
class Reference {
 public:
  Reference(const FactorizationModel& model, double decay)
      : model_(model), weights_(model.weights.begin(), model.weights.end()), decay_(decay) {}

  void step(const Rating& rating, double rate) {
    double* user = &weights_[model_.user_row(rating.user)];
    double* item = &weights_[model_.item_row(rating.item)];
    double& mean = weights_[model_.mean()];
    const auto width = static_cast<std::size_t>(model_.width);
    double error = user[width] + item[width] + mean - rating.value;
    for (std::size_t f = 0; f < width; ++f) error += user[f] * item[f];
    for (std::size_t f = 0; f < width; ++f) {
      const double old = user[f];
      user[f] -= rate * (2.0 * error * item[f] + decay_ * user[f]);
      item[f] -= rate * (2.0 * error * old + decay_ * item[f]);
    }
    user[width] -= rate * (2.0 * error + decay_ * user[width]);
    item[width] -= rate * (2.0 * error + decay_ * item[width]);
    mean -= rate * 2.0 * error;
  }

  const std::vector<double>& weights() const { return weights_; }

 private:
  const FactorizationModel& model_;
  std::vector<double> weights_;
  double decay_;
};

double rmse(const FactorizationModel& model, const std::vector<Rating>& ratings) {
  return std::sqrt(scheduler::squared_error(model, ratings));
}

}  // namespace

TEST_CASE("hogwild factorization: one thread is stochastic gradient descent") {
  const tests::RatingsSize size{.users = 40, .items = 30, .training = 400, .test = 50, .rank = 3};
  std::vector<Rating> order = tests::make_ratings(size).training;
  for (const std::int64_t width : {1, 3, 8, 19}) {
    CAPTURE(width);
    const FactorizationModel start = tests::make_factorization(size, width, 3.0F);
    HogwildFactorization solver(order, start, {.weight_decay = 0.02F, .seed = 7}, floating(1));
    Reference reference(start, 0.02F);
    std::vector<Rating> ratings = order;
    for (std::uint64_t epoch = 0; epoch < 3; ++epoch) {
      dataflow::RandomSequence random(7, scheduler::kRatingOrder, epoch);
      for (std::size_t i = ratings.size(); i > 1; --i) std::swap(ratings[i - 1], ratings[random.below(i)]);
      for (const Rating& rating : ratings) reference.step(rating, 0.05F);
      const FactorizationEpoch done = solver.epoch(epoch, 0.05F);
      CHECK(done.is_whole);
      CHECK(done.ratings == 400);
    }
    for (std::size_t i = 0; i < start.size(); ++i) {
      CHECK(solver.model().weights[i] == Approx(reference.weights()[i]).margin(2e-5));
    }
  }
}

TEST_CASE("hogwild factorization: several threads train every rating and come near one") {
  const tests::RatingsSize size{.rank = 2};
  const tests::MadeUpRatings ratings = tests::make_ratings(size);
  const FactorizationModel start = tests::make_factorization(size, 4, 3.5F);
  // The order of the ratings moves the error of a run, and so does the order in which threads take turns on the cores.
  // The mean over several orders moves less.
  constexpr std::uint64_t kRuns = 4;
  const auto mean_error = [&](int threads) {
    double sum = 0.0;
    for (std::uint64_t seed = 1; seed <= kRuns; ++seed) {
      HogwildFactorization solver(ratings.training, start, {.weight_decay = 0.02F, .seed = seed}, floating(threads));
      for (std::uint64_t epoch = 0; epoch < 20; ++epoch) {
        const FactorizationEpoch done = solver.epoch(epoch, epoch < 12 ? 0.02F : 0.002F);
        CHECK(done.is_whole);
        CHECK(done.ratings == 90000);
      }
      sum += rmse(solver.model(), ratings.test);
    }
    return sum / kRuns;
  };
  const double alone = mean_error(1);
  CHECK(alone < 1.25 * size.noise);
  for (const int threads : {2, 4}) {
    CAPTURE(threads);
    CHECK(mean_error(threads) == Approx(alone).epsilon(0.01));
  }
}

TEST_CASE("hogwild factorization: threads that fight for a few rows lose changes, not numbers") {
  const tests::RatingsSize size{.users = 4, .items = 500, .training = 1500, .test = 10, .rank = 1};
  const tests::MadeUpRatings ratings = tests::make_ratings(size);
  HogwildFactorization solver(ratings.training, tests::make_factorization(size, 2, 3.5F), {}, floating(8));
  for (std::uint64_t epoch = 0; epoch < 60; ++epoch) solver.epoch(epoch, 0.02F);
  CHECK(scheduler::squared_error(solver.model(), ratings.training) < 0.3);
}

TEST_CASE("hogwild factorization: rows that no rating touches keep their values, and a stop signal ends the epoch") {
  const tests::RatingsSize size{.users = 40, .items = 30, .training = 400, .test = 50, .rank = 3};
  const std::vector<Rating> ratings = tests::make_ratings(size).training;
  tests::RatingsSize larger = size;
  larger.users = 50;
  larger.items = 35;
  const FactorizationModel start = tests::make_factorization(larger, 5, 3.5F);
  HogwildFactorization solver(ratings, start, {.weight_decay = 0.1F}, floating(2));
  CHECK(solver.epoch(0, 0.05F).is_whole);
  const auto same = [&](std::size_t first, std::size_t count) {
    return std::equal(start.weights.begin() + static_cast<std::ptrdiff_t>(first),
                      start.weights.begin() + static_cast<std::ptrdiff_t>(first + count),
                      solver.model().weights.begin() + static_cast<std::ptrdiff_t>(first));
  };
  CHECK(same(start.user_row(40), 10 * start.row()));
  CHECK(same(start.item_row(30), 5 * start.row()));
  CHECK_FALSE(same(start.user_row(0), 40 * start.row()));
  CHECK_FALSE(same(start.item_row(0), 30 * start.row()));
  const std::atomic<int> signal = 2;
  const FactorizationEpoch cut = solver.epoch(1, 0.05F, &signal);
  CHECK_FALSE(cut.is_whole);
  CHECK(cut.ratings == 0);
}

TEST_CASE("the squared error of a factorization by hand") {
  // Two users, one item, width 2.
  FactorizationModel model{2, 1, 2, {1.0F, 2.0F, 0.5F, 0.0F, 1.0F, -0.5F, 3.0F, -1.0F, 0.25F, 2.0F}};
  REQUIRE(model.weights.size() == model.size());
  // Predictions: 1 * 3 + 2 * -1 + 0.5 + 0.25 + 2 = 3.75, and -1 - 0.5 + 0.25 + 2 = 0.75.
  CHECK(scheduler::squared_error(model, std::vector<Rating>{{0, 0, 3.75F}}) == 0.0);
  CHECK(scheduler::squared_error(model, std::vector<Rating>{{0, 0, 3.25F}, {1, 0, 1.75F}}) == Approx(0.625));
}
