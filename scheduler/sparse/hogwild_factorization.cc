#include "scheduler/sparse/hogwild_factorization.h"

#include <array>
#include <utility>

#include "dataflow/input/batches/random_sequence.h"
#include "engine/base/error.h"
#include "engine/host/relaxed.h"
#include "scheduler/sparse/order_streams.h"
#include "scheduler/sparse/worker_threads.h"

namespace arbalest::scheduler {

using engine::host::load_relaxed;
using engine::host::store_relaxed;

namespace {

constexpr std::size_t kLinePair = 128;

// Eight sums side by side, which the compiler can keep in one register.
float inner_product(std::span<const float> a, std::span<const float> b) {
  constexpr std::size_t kSums = 8;
  std::array<float, kSums> sums{};
  std::size_t i = 0;
  for (; i + kSums <= a.size(); i += kSums) {
    for (std::size_t s = 0; s < kSums; ++s) sums[s] += a[i + s] * b[i + s];
  }
  float total = 0.0F;
  for (; i < a.size(); ++i) total += a[i] * b[i];
  for (const float sum : sums) total += sum;
  return total;
}

// Returns the part of each id when [0, ids) is cut into `parts` ranges with about as many ratings each.
std::vector<std::size_t> cut(std::span<const std::int64_t> ratings_by_id, std::int64_t ratings, std::size_t parts) {
  std::vector<std::size_t> part_of;
  std::int64_t before = 0;
  for (const std::int64_t count : ratings_by_id) {
    part_of.push_back(
        static_cast<std::size_t>((before + count / 2) * static_cast<std::int64_t>(parts) / (ratings + 1)));
    before += count;
  }
  return part_of;
}

}  // namespace

double squared_error(const FactorizationModel& model, std::span<const Rating> ratings) {
  const std::span weights(model.weights);
  const auto width = static_cast<std::size_t>(model.width);
  double sum = 0.0;
  for (const Rating& rating : ratings) {
    const std::size_t user = model.user_row(rating.user);
    const std::size_t item = model.item_row(rating.item);
    const float product = inner_product(weights.subspan(user, width), weights.subspan(item, width));
    const double error =
        double{product} + weights[user + width] + weights[item + width] + weights[model.mean()] - rating.value;
    sum += error * error;
  }
  return sum / static_cast<double>(ratings.size());
}

// One thread in one epoch. Workers, and the rows that they copy, lie on cache lines of their own: threads that write to
// one line wait for each other (measured: two threads were then no faster than one). Lines are fetched in pairs.
class alignas(kLinePair) HogwildFactorization::Worker {
 public:
  Worker(FactorizationModel& model, float weight_decay, float learning_rate)
      : model_(model),
        weights_(model.weights),
        weight_decay_(weight_decay),
        learning_rate_(learning_rate),
        user_lines_(lines_of(model.width)),
        item_lines_(lines_of(model.width)),
        user_(user_lines_.front().numbers.data(), static_cast<std::size_t>(model.width)),
        item_(item_lines_.front().numbers.data(), static_cast<std::size_t>(model.width)) {}
  Worker(Worker&&) = default;

  // Returns false if the stop signal has ended the work.
  bool train(std::span<const Rating> ratings, const std::atomic<int>* stop_signal) {
    for (const Rating& rating : ratings) {
      if (done_ % kMeanPeriod == 0) {
        if (stop_signal != nullptr && stop_signal->load(std::memory_order_relaxed) != 0) return false;
        exchange_mean();
      }
      step(rating);
      ++done_;
    }
    return true;
  }

  void exchange_mean() {
    float& shared = weights_[model_.mean()];
    std::atomic_ref(shared).fetch_add(std::exchange(change_, 0.0F), std::memory_order_relaxed);
    mean_ = load_relaxed(shared);
  }

  std::int64_t done() const noexcept { return done_; }

 private:
  void step(const Rating& rating) {
    const std::size_t width = user_.size();
    float* user = &weights_[model_.user_row(rating.user)];
    float* item = &weights_[model_.item_row(rating.item)];
    for (std::size_t f = 0; f < width; ++f) user_[f] = load_relaxed(user[f]);
    for (std::size_t f = 0; f < width; ++f) item_[f] = load_relaxed(item[f]);
    const float user_bias = load_relaxed(user[width]);
    const float item_bias = load_relaxed(item[width]);
    const float error = inner_product(user_, item_) + user_bias + item_bias + (mean_ + change_) - rating.value;
    const float pull = learning_rate_ * 2.0F * error;
    const float kept = 1.0F - learning_rate_ * weight_decay_;
    for (std::size_t f = 0; f < width; ++f) store_relaxed(user[f], kept * user_[f] - pull * item_[f]);
    for (std::size_t f = 0; f < width; ++f) store_relaxed(item[f], kept * item_[f] - pull * user_[f]);
    store_relaxed(user[width], kept * user_bias - pull);
    store_relaxed(item[width], kept * item_bias - pull);
    change_ -= pull;
  }

  struct alignas(kLinePair) LinePair {
    std::array<float, kLinePair / sizeof(float)> numbers{};
  };

  static std::vector<LinePair> lines_of(std::int64_t floats) {
    return std::vector<LinePair>(static_cast<std::size_t>(floats) * sizeof(float) / kLinePair + 1);
  }

  FactorizationModel& model_;
  std::span<float> weights_;
  float weight_decay_;
  float learning_rate_;
  std::vector<LinePair> user_lines_;
  std::vector<LinePair> item_lines_;
  std::span<float> user_;  // copies of the rows of a step
  std::span<float> item_;
  float mean_ = 0.0F;    // m when it was last read
  float change_ = 0.0F;  // of m since then
  std::int64_t done_ = 0;
};

HogwildFactorization::HogwildFactorization(std::span<const Rating> ratings, FactorizationModel model,
                                           const FactorizationOptions& options, std::vector<std::vector<int>> cores)
    : model_(std::move(model)), options_(options), cores_(std::move(cores)) {
  ARBALEST_CHECK(model_.weights.size() == model_.size());
  const std::size_t threads = cores_.size();
  std::vector<std::int64_t> by_user(static_cast<std::size_t>(model_.users));
  std::vector<std::int64_t> by_item(static_cast<std::size_t>(model_.items));
  for (const Rating& rating : ratings) {
    ++by_user[static_cast<std::size_t>(rating.user)];
    ++by_item[static_cast<std::size_t>(rating.item)];
  }
  const auto count = static_cast<std::int64_t>(ratings.size());
  const std::vector<std::size_t> users = cut(by_user, count, threads);
  const std::vector<std::size_t> items = cut(by_item, count, threads);
  blocks_.resize(threads * threads);
  for (const Rating& rating : ratings) {
    const std::size_t thread = users[static_cast<std::size_t>(rating.user)];
    blocks_[thread * threads + items[static_cast<std::size_t>(rating.item)]].push_back(rating);
  }
}

FactorizationEpoch HogwildFactorization::epoch(std::uint64_t number, float learning_rate,
                                               const std::atomic<int>* stop_signal) {
  const std::size_t threads = cores_.size();
  std::vector<Worker> workers;
  for (std::size_t t = 0; t < threads; ++t) workers.emplace_back(model_, options_.weight_decay, learning_rate);
  std::int64_t ratings = 0;
  for (const std::vector<Rating>& block : blocks_) ratings += static_cast<std::int64_t>(block.size());
  run_workers(
      cores_,
      [&](int thread) {
        const auto t = static_cast<std::size_t>(thread);
        for (std::size_t step = 0; step < threads; ++step) {
          const std::size_t block = t * threads + (t + step) % threads;
          dataflow::RandomSequence random(options_.seed, kRatingOrder + block, number);
          dataflow::shuffle(std::span(blocks_[block]), random);
          if (!workers[t].train(blocks_[block], stop_signal)) break;
        }
        workers[t].exchange_mean();
      },
      [] {});
  FactorizationEpoch done;
  for (const Worker& worker : workers) done.ratings += worker.done();
  done.is_whole = done.ratings == ratings;
  return done;
}

}  // namespace arbalest::scheduler
