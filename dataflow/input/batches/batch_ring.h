// A ring of batches in host memory. Tasks of the host pool fill it ahead of use; batches are handed out in sequence.
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

#include "dataflow/input/batches/batch_memory.h"
#include "dataflow/input/batches/batch_order.h"
#include "dataflow/input/batches/batch_share.h"
#include "dataflow/input/batches/input_observer.h"
#include "dataflow/input/dataset.h"
#include "dataflow/input/skip_limit.h"
#include "engine/buffer.h"
#include "engine/device.h"
#include "engine/host/pool.h"

namespace arbalest::dataflow {

struct Batch {
  std::uint64_t number = 0;
  const std::int64_t* indices = nullptr;  // [b] in the dataset; BatchOrder::kNoExample where there is no example
  // The tensors of the dataset's description, [b, ...] each; the label is the last one. A place without an example has
  // features of zeros; its label is engine::kNoLabel, or NaN if labels are numbers. The place of a skipped example has
  // the features of the nearest earlier place that holds an example (the last place comes before the first). So batch
  // norm's statistics see real images only. Empty in a ring of indices.
  std::span<const InputTensor> tensors = {};
  int examples = 0;  // number of the b places that hold an example
};

// The ring hands out the batches of its share of the sequence. The n-th of them is in slot n mod slots, so next() waits
// until the batch `slots` places before it has been released. A caller that still holds that batch must not call
// next().
//
// A batch of a ring of indices has no tensors: steps gather the examples themselves (cached_data.h).
//
// Threads: next() and restart() belong to one consumer; release() may be called from any thread.
class BatchRing {
 public:
  // Host memory that the slots take. `description`: that of the dataset; null for a ring of indices.
  static std::size_t bytes(const InputDescription* description, std::int64_t batch_size, int slots);

  // Starts to fill at once, from batch `first`. Allocates all slots once, in `device`'s host memory. Objects passed by
  // reference must outlive the ring.
  BatchRing(const Dataset& dataset, BatchOrder& order, engine::Device& device, engine::host::Pool& pool, int slots,
            std::uint64_t first = 0);
  // Makes a ring of indices.
  BatchRing(BatchOrder& order, engine::Device& device, engine::host::Pool& pool, int slots, std::uint64_t first = 0);
  ~BatchRing();  // waits for the ring's tasks
  BatchRing(const BatchRing&) = delete;
  BatchRing& operator=(const BatchRing&) = delete;

  // Returns the next batch in sequence and waits until it is filled; returns none after the last batch of a finite
  // order. Throws the error of reading the batch, and throws it again on every later call. The batch stays valid until
  // it is released.
  std::optional<Batch> next();
  // Whether the next `batches` calls of next() need no release() before them. Called by the consumer.
  bool can_hand_out(int batches);
  // Returns the batch's slot to the ring for refilling. Each batch must be released once.
  void release(std::uint64_t number);

  // Takes effect for tasks that start later. `observer` must outlive the ring's tasks; null: no observer.
  void set_observer(InputObserver* observer);

  // Number of examples missing from the batches handed out so far because they were unreadable and the dataset skips
  // those.
  std::int64_t skipped() const noexcept { return skipped_; }
  // The error of the first skipped example in sequence; empty if none was skipped.
  const std::string& first_skipped() const noexcept { return first_skipped_; }
  // The errors of the first skipped examples in sequence since the last call of forget_named(), at most kNamedSkips.
  const std::vector<std::string>& named_skipped() const noexcept { return named_skipped_; }
  void forget_named() { named_skipped_.clear(); }

  // Restarts the sequence at `first`. All batches must have been released.
  void restart(std::uint64_t first = 0) { restart(first, share_); }
  // Also changes the share that is handed out from `first` on. At the start the share is the whole sequence.
  void restart(std::uint64_t first, const BatchShare& share);
  const BatchShare& share() const noexcept { return share_; }
  // Number of batches of the whole sequence; none if it is endless.
  std::optional<std::uint64_t> batches() const { return order_.batches(); }

 private:
  enum class State { kFree, kFilling, kReady, kOut };
  struct Slot {
    State state = State::kFree;
    Batch batch;
    std::span<std::int64_t> indices;
    std::vector<InputTensor> row;  // the features of the example that is being read
    std::exception_ptr failure;
    std::int64_t skipped = 0;                // number of skipped examples in the batch
    std::vector<std::string> named_skipped;  // errors of the first ones
    std::size_t group = 0;                   // batches of the task whose first batch is in this slot
  };

  BatchRing(const Dataset* dataset, BatchOrder& order, engine::Device& device, engine::host::Pool& pool, int slots,
            std::uint64_t first);

  Slot& slot_at(std::uint64_t position) { return slots_[position % slots_.size()]; }
  std::uint64_t number_at(std::uint64_t position) const { return first_ + share_.number_at(position); }
  // Number of batches from first_ on that the ring hands out; none if the order is endless.
  std::optional<std::uint64_t> positions() const;
  void submit_fills(std::size_t at_least);
  std::size_t fillable();
  void fill_group(std::uint64_t first) noexcept;
  void fill(Slot& slot, std::uint64_t position) const;
  void read_examples(Slot& slot) const;
  bool read_example(Slot& slot, std::size_t row) const;
  void stop_fills(std::unique_lock<std::mutex>& lock);

  const Dataset* dataset_;  // null: a ring of indices
  BatchOrder& order_;
  engine::host::Pool& pool_;
  engine::Buffer indices_;
  std::optional<BatchMemory> memory_;  // by slot; none in a ring of indices
  std::vector<Slot> slots_;
  std::size_t group_;  // batches of one task
  std::int64_t skipped_ = 0;
  std::string first_skipped_;
  std::vector<std::string> named_skipped_;

  std::mutex mutex_;
  InputObserver* observer_ = nullptr;
  std::condition_variable filled_;
  std::uint64_t first_;          // number of the batch at which the sequence began
  BatchShare share_ = {};        // changes only while nothing is filled
  std::uint64_t next_out_ = 0;   // position, counted from first_, of the batch that next() returns
  std::uint64_t next_fill_ = 0;  // position of the first batch that no task has been submitted for
  std::size_t fillable_ = 0;     // number of batches from next_fill_ on that have a free slot
  std::size_t batches_filling_ = 0;
  bool consumer_waits_ = false;
  bool stopping_ = false;
};

}  // namespace arbalest::dataflow
