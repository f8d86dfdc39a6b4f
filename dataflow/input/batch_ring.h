// Batches in host memory, filled ahead of their use by tasks of the host pool and handed out in sequence.
#pragma once

#include <condition_variable>
#include <cstddef>
#include <cstdint>
#include <exception>
#include <mutex>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "dataflow/input/batch_order.h"
#include "dataflow/input/dataset.h"
#include "dataflow/input/input_observer.h"
#include "engine/buffer.h"
#include "engine/device.h"
#include "engine/host/pool.h"

namespace arbalest::dataflow {

struct Batch {
  std::uint64_t number = 0;
  const std::int64_t* indices = nullptr;  // [b] in the dataset; BatchOrder::kNoExample where there is no example
  // As Dataset::read and label have them. A skipped example's place has the image of the nearest place before it that
  // holds an example (the last is before the first), so that batch norm's statistics are of real images.
  const float* images = nullptr;         // [b, c, h, w] or [b, columns], 64-byte aligned; zeros where there is none
  const std::int32_t* labels = nullptr;  // [b]; engine::kNoLabel where there is no example
  int examples = 0;                      // how many of the b places hold one
};

// Batch n lives in slot n mod slots, so next() waits for the release of the batch that is `slots` before it: who holds
// that one himself must not call next().
// A ring of indices leaves images and labels null: steps gather the examples themselves (resident_data.h).
// Threads: next() and restart() belong to one consumer; release() may be called from any thread.
class BatchRing {
 public:
  // What the slots take of host memory. `pixels`: of an image; 0 for a ring of indices.
  static std::size_t bytes(std::int64_t batch_size, std::int64_t pixels, int slots);

  // Fills at once, from batch `first`. The memory of all slots is `device`'s host memory, allocated here once. What is
  // passed by reference must outlive the ring.
  BatchRing(const Dataset& dataset, BatchOrder& order, engine::Device& device, engine::host::Pool& pool, int slots,
            std::uint64_t first = 0);
  // A ring of indices.
  BatchRing(BatchOrder& order, engine::Device& device, engine::host::Pool& pool, int slots, std::uint64_t first = 0);
  ~BatchRing();  // waits for its tasks
  BatchRing(const BatchRing&) = delete;
  BatchRing& operator=(const BatchRing&) = delete;

  // The next batch in sequence, waiting until it is filled; nothing after the last batch of a finite order. Throws what
  // reading the batch threw, and again on every later call. The batch stays valid until it is released.
  std::optional<Batch> next();
  // Gives the batch's slot back to be refilled. Each batch is released once.
  void release(std::uint64_t number);

  // From now on; what is being filled already goes unseen. `observer` must outlive the ring's tasks; null: nobody.
  void set_observer(InputObserver* observer);

  // How many examples were left out of the batches handed out so far, because the dataset skips what cannot be read.
  std::int64_t skipped() const noexcept { return skipped_; }
  // What the first of them, in the order of the sequence, threw; empty if there is none.
  const std::string& first_skipped() const noexcept { return first_skipped_; }

  // The sequence starts again at `first`. All batches must have been released.
  void restart(std::uint64_t first = 0);

 private:
  enum class State { kFree, kFilling, kReady, kOut };
  struct Slot {
    State state = State::kFree;
    Batch batch;
    std::span<std::int64_t> indices;
    float* images = nullptr;         // null in a ring of indices
    std::int32_t* labels = nullptr;  // alike
    std::exception_ptr failure;
    std::int64_t skipped = 0;   // examples of the batch
    std::string first_skipped;  // what its first threw
    std::size_t group = 0;      // batches of the task whose first batch lives here
  };

  BatchRing(const Dataset* dataset, BatchOrder& order, engine::Device& device, engine::host::Pool& pool, int slots,
            std::uint64_t first);

  void allocate_images(engine::Device& device, std::size_t batch_size);
  Slot& slot_of(std::uint64_t number) { return slots_[number % slots_.size()]; }
  void submit_fills(std::size_t at_least);
  std::size_t fillable();
  void fill_group(std::uint64_t first) noexcept;
  void fill(Slot& slot, std::uint64_t number) const;
  void read_examples(Slot& slot) const;
  void fill_skipped(const Slot& slot, std::size_t row) const;
  bool read_example(Slot& slot, std::size_t row) const;
  void stop_fills(std::unique_lock<std::mutex>& lock);

  const Dataset* dataset_;  // null: a ring of indices
  BatchOrder& order_;
  engine::host::Pool& pool_;
  engine::Buffer indices_;
  engine::Buffer images_;
  engine::Buffer labels_;
  std::vector<Slot> slots_;
  std::size_t group_;  // batches of one task
  std::int64_t skipped_ = 0;
  std::string first_skipped_;

  std::mutex mutex_;
  InputObserver* observer_ = nullptr;
  std::condition_variable filled_;
  std::uint64_t next_out_;    // what next() returns
  std::uint64_t next_fill_;   // the first batch that no task has been submitted for
  std::size_t fillable_ = 0;  // batches from there on that are known to have a free slot
  std::size_t batches_filling_ = 0;
  bool consumer_waits_ = false;
  bool stopping_ = false;
};

}  // namespace arbalest::dataflow
