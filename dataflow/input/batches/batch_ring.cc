#include "dataflow/input/batches/batch_ring.h"

#include <algorithm>
#include <limits>

#include "engine/base/alignment.h"
#include "engine/base/error.h"
#include "engine/ops/softmax_cross_entropy.h"

namespace arbalest::dataflow {
namespace {

// A task fills several batches: oneTBB workers spin for a while after a wake-up, so rare wake-ups keep the input cheap.
// A quarter of the ring per task leaves three quarters to consume meanwhile.
std::size_t batches_of_a_task(std::size_t slots) { return std::max<std::size_t>(1, slots / 4); }

// Size of one slot.
std::size_t index_bytes(std::size_t batch_size) { return engine::aligned(batch_size * sizeof(std::int64_t)); }

void fill_zero(const InputTensor& tensor) { std::ranges::fill(tensor.bytes(), std::byte{0}); }

// Writes the label of a place without an example.
void mark_unlabeled(const InputTensor& label) {
  if (label.description().dtype == engine::DType::kInt32) {
    std::ranges::fill(label.as<std::int32_t>(), engine::kNoLabel);
  } else {
    std::ranges::fill(label.as<float>(), std::numeric_limits<float>::quiet_NaN());
  }
}

// Copies the features of a real example to the skipped place `row`: zeros would enter batch norm's statistics.
// `indices`: by place; one of them is an example.
void fill_skipped(std::span<const InputTensor> features, std::span<const std::int64_t> indices, std::size_t row) {
  std::size_t from = row;
  do {
    from = (from + indices.size() - 1) % indices.size();
  } while (indices[from] == BatchOrder::kNoExample);
  for (const InputTensor& feature : features)
    std::ranges::copy(feature.row(from).bytes(), feature.row(row).bytes().data());
}

}  // namespace

std::size_t BatchRing::bytes(const InputDescription* description, std::int64_t batch_size, int slots) {
  const std::size_t examples = description == nullptr ? 0 : BatchMemory::bytes(*description, batch_size, slots);
  return static_cast<std::size_t>(slots) * index_bytes(static_cast<std::size_t>(batch_size)) + examples;
}

BatchRing::BatchRing(const Dataset& dataset, BatchOrder& order, engine::Device& device, engine::host::Pool& pool,
                     int slots, std::uint64_t first)
    : BatchRing(&dataset, order, device, pool, slots, first) {}

BatchRing::BatchRing(BatchOrder& order, engine::Device& device, engine::host::Pool& pool, int slots,
                     std::uint64_t first)
    : BatchRing(nullptr, order, device, pool, slots, first) {}

BatchRing::BatchRing(const Dataset* dataset, BatchOrder& order, engine::Device& device, engine::host::Pool& pool,
                     int slots, std::uint64_t first)
    : dataset_(dataset),
      order_(order),
      pool_(pool),
      slots_(static_cast<std::size_t>(slots)),
      group_(batches_of_a_task(slots_.size())),
      first_(first) {
  ARBALEST_CHECK(slots > 0);
  const auto batch_size = static_cast<std::size_t>(order.batch_size());
  const std::size_t stride = index_bytes(batch_size);
  indices_ = device.allocate_host(slots_.size() * stride);
  for (std::size_t i = 0; i < slots_.size(); ++i) {
    slots_[i].indices = {reinterpret_cast<std::int64_t*>(indices_.as<std::byte>() + i * stride), batch_size};
  }
  if (dataset != nullptr) {
    memory_.emplace(dataset->description(), order.batch_size(), device, slots);
    const std::span features = memory_->batch().first(dataset->description().features().size());
    for (Slot& slot : slots_) slot.row.assign(features.begin(), features.end());
  }
  std::unique_lock lock(mutex_);
  try {
    submit_fills(group_);
  } catch (...) {
    stop_fills(lock);  // no destructor runs after this
    throw;
  }
}

BatchRing::~BatchRing() {
  std::unique_lock lock(mutex_);
  stop_fills(lock);
}

std::optional<Batch> BatchRing::next() {
  std::unique_lock lock(mutex_);
  const std::optional<std::uint64_t> total = positions();
  if (total && next_out_ >= *total) return std::nullopt;

  Slot& slot = slot_at(next_out_);
  const auto ready = [&] { return slot.state == State::kReady; };
  if (!ready()) {
    submit_fills(1);
    consumer_waits_ = true;
    if (observer_ != nullptr) observer_->before_wait();
    filled_.wait(lock, ready);
    if (observer_ != nullptr) observer_->after_wait();
    consumer_waits_ = false;
  }
  if (slot.failure) std::rethrow_exception(slot.failure);
  slot.state = State::kOut;
  skipped_ += slot.skipped;
  if (first_skipped_.empty() && !slot.named_skipped.empty()) first_skipped_ = slot.named_skipped.front();
  for (const std::string& error : slot.named_skipped) {
    if (named_skipped_.size() < kNamedSkips) named_skipped_.push_back(error);
  }
  ++next_out_;
  return slot.batch;
}

bool BatchRing::can_hand_out(int batches) {
  const std::lock_guard lock(mutex_);
  for (std::uint64_t i = 0; std::cmp_less(i, batches); ++i) {
    if (slot_at(next_out_ + i).state == State::kOut) return false;
  }
  return std::cmp_less_equal(batches, slots_.size());
}

void BatchRing::set_observer(InputObserver* observer) {
  const std::lock_guard lock(mutex_);
  observer_ = observer;
}

void BatchRing::release(std::uint64_t number) {
  const std::lock_guard lock(mutex_);
  Slot& slot = slot_at(share_.position_of(number - first_));
  ARBALEST_CHECK(slot.state == State::kOut && slot.batch.number == number);
  slot.state = State::kFree;
  submit_fills(consumer_waits_ ? 1 : group_);
}

std::optional<std::uint64_t> BatchRing::positions() const {
  const std::optional<std::uint64_t> total = order_.batches();
  if (!total) return std::nullopt;
  return *total > first_ ? share_.among(*total - first_) : 0;
}

void BatchRing::restart(std::uint64_t first, const BatchShare& share) {
  ARBALEST_CHECK(share.first >= 0 && share.first < share.all && share.count > 0 && share.count <= share.all);
  std::unique_lock lock(mutex_);
  stop_fills(lock);
  for (Slot& slot : slots_) {
    ARBALEST_CHECK(slot.state != State::kOut);
    slot.state = State::kFree;
    slot.failure = nullptr;
  }
  stopping_ = false;
  first_ = first;
  share_ = share;
  next_out_ = next_fill_ = 0;
  fillable_ = 0;
  submit_fills(group_);
}

// Submits tasks for all free slots in sequence, with at least `at_least` batches per task, except at the sequence's
// end.
void BatchRing::submit_fills(std::size_t at_least) {
  const std::optional<std::uint64_t> total = positions();
  for (;;) {
    const std::size_t count = fillable();
    if (count == 0 || (count < at_least && next_fill_ + count != total)) return;
    pool_.submit([this, first = next_fill_] { fill_group(first); });  // fill_group() takes mutex_ before anything else
    slot_at(next_fill_).group = count;
    for (std::size_t i = 0; i < count; ++i) slot_at(next_fill_ + i).state = State::kFilling;
    next_fill_ += count;
    fillable_ = 0;
    batches_filling_ += count;
  }
}

// Number of batches from next_fill_ on that exist and have a free slot, up to one task's batches. A free slot stays
// free until a task is submitted for it, so each slot is checked once.
std::size_t BatchRing::fillable() {
  const std::optional<std::uint64_t> total = positions();
  while (fillable_ < group_ && slot_at(next_fill_ + fillable_).state == State::kFree &&
         (!total || next_fill_ + fillable_ < *total)) {
    ++fillable_;
  }
  return fillable_;
}

void BatchRing::fill_group(std::uint64_t first) noexcept {
  std::unique_lock lock(mutex_);
  const std::size_t count = slot_at(first).group;
  InputObserver* const observer = observer_;
  if (observer != nullptr) observer->before_fill();
  for (std::size_t i = 0; i < count; ++i) {
    Slot& slot = slot_at(first + i);
    if (!stopping_) {
      lock.unlock();
      try {
        fill(slot, first + i);
      } catch (...) {
        slot.failure = std::current_exception();  // next() rethrows it
      }
      lock.lock();
    }
    // The observer is called before the last batch counts as filled: afterwards ring and observer may be gone.
    if (observer != nullptr && i + 1 == count) observer->after_fill();
    slot.state = State::kReady;
    --batches_filling_;
    if (consumer_waits_) filled_.notify_one();
  }
}

void BatchRing::fill(Slot& slot, std::uint64_t position) const {
  const std::uint64_t number = number_at(position);
  order_.indices(number, slot.indices);
  const auto padding = std::ranges::count(slot.indices, BatchOrder::kNoExample);
  slot.batch = Batch{number, slot.indices.data(), {}, static_cast<int>(std::ssize(slot.indices) - padding)};
  if (dataset_ == nullptr) return;
  slot.batch.tensors = memory_->batch(static_cast<int>(position % slots_.size()));
  read_examples(slot);
}

void BatchRing::read_examples(Slot& slot) const {
  const std::span features = slot.batch.tensors.first(slot.batch.tensors.size() - 1);
  std::vector<std::size_t> skipped;
  slot.named_skipped.clear();
  for (std::size_t row = 0; row < slot.indices.size(); ++row) {
    for (std::size_t f = 0; f < features.size(); ++f) slot.row[f] = features[f].row(row);
    if (slot.indices[row] != BatchOrder::kNoExample) {
      if (read_example(slot, row)) continue;
      skipped.push_back(row);
      slot.indices[row] = BatchOrder::kNoExample;
      --slot.batch.examples;
    }
    std::ranges::for_each(slot.row, fill_zero);
    mark_unlabeled(slot.batch.tensors.back().row(row));
  }
  slot.skipped = std::ssize(skipped);
  if (slot.batch.examples == 0) return;
  for (const std::size_t row : skipped) fill_skipped(features, slot.indices, row);
}

// Reads into slot.row. Returns false if the example cannot be read and is skipped.
bool BatchRing::read_example(Slot& slot, std::size_t row) const {
  const std::int64_t example = slot.indices[row];
  try {
    dataset_->read(example, {slot.batch.number, static_cast<std::uint32_t>(row)}, slot.row);
  } catch (const engine::Error& error) {
    if (error.kind() != engine::ErrorKind::kData || !dataset_->skips_unreadable()) throw;
    if (slot.named_skipped.size() < kNamedSkips) slot.named_skipped.emplace_back(error.what());
    return false;
  }
  dataset_->read_label(example, slot.batch.tensors.back().row(row));
  return true;
}

// Makes running tasks stop after their current batch and waits until none runs.
void BatchRing::stop_fills(std::unique_lock<std::mutex>& lock) {
  stopping_ = true;
  consumer_waits_ = true;
  filled_.wait(lock, [this] { return batches_filling_ == 0; });
  consumer_waits_ = false;
}

}  // namespace arbalest::dataflow
