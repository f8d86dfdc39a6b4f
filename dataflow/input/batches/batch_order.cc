#include "dataflow/input/batches/batch_order.h"

#include <limits>
#include <numeric>
#include <utility>

#include "dataflow/input/batches/random_sequence.h"
#include "engine/base/error.h"

namespace arbalest::dataflow {
namespace {

constexpr std::uint64_t kShuffleStream = 0x73687566666C65;  // keeps shuffles apart from other uses of a job's seed

}  // namespace

ShuffledOrder::ShuffledOrder(std::int64_t examples, std::int64_t batch_size, std::uint64_t seed)
    : examples_(examples), batch_size_(batch_size), seed_(seed) {
  ARBALEST_CHECK(batch_size > 0);
  ARBALEST_CHECK(examples <= std::numeric_limits<std::uint32_t>::max());
  if (batch_size > examples) {
    engine::fail(engine::ErrorKind::kInvalidJob,
                 "a batch of {} examples is larger than the training set of {}; lower training.batch_size", batch_size,
                 examples);
  }
  for (Epoch& epoch : epochs_) epoch.examples.resize(static_cast<std::size_t>(examples));
}

void ShuffledOrder::shuffle(Epoch& epoch, std::uint64_t number) const {
  // The shuffle starts from the identity, so that an epoch depends on no other.
  std::iota(epoch.examples.begin(), epoch.examples.end(), 0U);
  RandomSequence random(seed_, kShuffleStream, number);
  dataflow::shuffle(std::span(epoch.examples), random);
  epoch.number = number;
}

void ShuffledOrder::indices(std::uint64_t batch, std::span<std::int64_t> out) {
  ARBALEST_CHECK(std::cmp_equal(out.size(), batch_size_));
  const auto per_epoch = static_cast<std::uint64_t>(batches_per_epoch());
  const std::uint64_t number = batch / per_epoch;
  const std::size_t first = batch % per_epoch * out.size();

  const std::lock_guard lock(mutex_);
  Epoch& epoch = epochs_[number % 2];
  if (epoch.number != number) shuffle(epoch, number);
  for (std::size_t i = 0; i < out.size(); ++i) out[i] = epoch.examples[first + i];
}

SequentialOrder::SequentialOrder(std::int64_t examples, std::int64_t batch_size, std::int64_t first)
    : examples_(examples), batch_size_(batch_size), first_(first) {
  ARBALEST_CHECK(batch_size > 0 && examples > 0 && first >= 0);
}

void SequentialOrder::indices(std::uint64_t batch, std::span<std::int64_t> out) {
  ARBALEST_CHECK(std::cmp_equal(out.size(), batch_size_));
  ARBALEST_CHECK(std::cmp_less(batch, batches_per_epoch()));
  const std::int64_t before = static_cast<std::int64_t>(batch) * batch_size_;
  for (std::int64_t i = 0; i < batch_size_; ++i) {
    out[static_cast<std::size_t>(i)] = before + i < examples_ ? first_ + before + i : kNoExample;
  }
}

}  // namespace arbalest::dataflow
