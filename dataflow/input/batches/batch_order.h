// Assigns examples to mini-batches. Batches are numbered from 0; training numbers continue over all epochs.
#pragma once

#include <array>
#include <cstdint>
#include <mutex>
#include <optional>
#include <span>
#include <vector>

#include "engine/ops/gather_examples.h"

namespace arbalest::dataflow {

// Any number of threads may ask for any batches, in any sequence.
class BatchOrder {
 public:
  // Marks a place of a padded batch that holds no example.
  static constexpr std::int64_t kNoExample = engine::kNoExample;

  virtual ~BatchOrder() = default;

  virtual std::int64_t batch_size() const noexcept = 0;
  virtual std::int64_t batches_per_epoch() const noexcept = 0;
  // Number of batches; none if the order is endless.
  virtual std::optional<std::uint64_t> batches() const noexcept = 0;
  // Writes the examples of `batch`: batch_size() of them.
  virtual void indices(std::uint64_t batch, std::span<std::int64_t> out) = 0;
};

// The order of training: each epoch has its own shuffle, keyed by (seed, epoch). Examples that do not fill a batch at
// the end of an epoch are dropped; they differ from epoch to epoch.
class ShuffledOrder final : public BatchOrder {
 public:
  // Throws ErrorKind::kInvalidJob if the dataset is smaller than a batch.
  ShuffledOrder(std::int64_t examples, std::int64_t batch_size, std::uint64_t seed);

  std::int64_t batch_size() const noexcept override { return batch_size_; }
  std::int64_t batches_per_epoch() const noexcept override { return examples_ / batch_size_; }
  std::optional<std::uint64_t> batches() const noexcept override { return std::nullopt; }
  void indices(std::uint64_t batch, std::span<std::int64_t> out) override;

  // Number of examples that each epoch drops.
  std::int64_t dropped_examples() const noexcept { return examples_ % batch_size_; }

 private:
  struct Epoch {
    std::optional<std::uint64_t> number;
    std::vector<std::uint32_t> examples;
  };

  void shuffle(Epoch& epoch, std::uint64_t number) const;

  std::int64_t examples_;
  std::int64_t batch_size_;
  std::uint64_t seed_;
  std::mutex mutex_;
  // The latest even and the latest odd epoch asked for. Batches that are prepared ahead belong to at most two epochs,
  // unless an epoch is shorter than the run-ahead; such an epoch is cheap to shuffle.
  std::array<Epoch, 2> epochs_;
};

// The first `batches` batches of another order, which must outlive this one.
class FirstBatches final : public BatchOrder {
 public:
  FirstBatches(BatchOrder& order, std::int64_t batches) : order_(order), batches_(batches) {}

  std::int64_t batch_size() const noexcept override { return order_.batch_size(); }
  std::int64_t batches_per_epoch() const noexcept override { return batches_; }
  std::optional<std::uint64_t> batches() const noexcept override { return static_cast<std::uint64_t>(batches_); }
  void indices(std::uint64_t batch, std::span<std::int64_t> out) override { order_.indices(batch, out); }

 private:
  BatchOrder& order_;
  std::int64_t batches_;
};

// The order of evaluation: each example of [first, first + examples) once, in the dataset's order. The last batch is
// padded with kNoExample.
class SequentialOrder final : public BatchOrder {
 public:
  SequentialOrder(std::int64_t examples, std::int64_t batch_size, std::int64_t first = 0);

  std::int64_t batch_size() const noexcept override { return batch_size_; }
  std::int64_t batches_per_epoch() const noexcept override { return (examples_ + batch_size_ - 1) / batch_size_; }
  std::optional<std::uint64_t> batches() const noexcept override {
    return static_cast<std::uint64_t>(batches_per_epoch());
  }
  void indices(std::uint64_t batch, std::span<std::int64_t> out) override;

 private:
  std::int64_t examples_;
  std::int64_t batch_size_;
  std::int64_t first_;
};

}  // namespace arbalest::dataflow
