#include "dataflow/input/batches/batch_ring.h"

#include <algorithm>

#include "engine/alignment.h"
#include "engine/error.h"
#include "engine/ops/softmax_cross_entropy.h"

namespace arbalest::dataflow {
namespace {

// A task fills several batches: oneTBB workers spin for a while after a wake-up, so rare wake-ups keep the input cheap.
// A quarter of the ring per task leaves three quarters to consume meanwhile.
std::size_t batches_of_a_task(std::size_t slots) { return std::max<std::size_t>(1, slots / 4); }

// Both sizes are those of one slot.
std::size_t index_bytes(std::size_t batch_size) { return engine::aligned(batch_size * sizeof(std::int64_t)); }
std::size_t label_bytes(std::size_t batch_size) { return engine::aligned(batch_size * sizeof(std::int32_t)); }
std::size_t image_bytes(std::size_t batch_size, std::size_t pixels) {
  return engine::aligned(batch_size * pixels * sizeof(float));
}

}  // namespace

std::size_t BatchRing::bytes(std::int64_t batch_size, std::int64_t pixels, int slots) {
  const auto batch = static_cast<std::size_t>(batch_size);
  const std::size_t images =
      pixels == 0 ? 0 : image_bytes(batch, static_cast<std::size_t>(pixels)) + label_bytes(batch);
  return static_cast<std::size_t>(slots) * (index_bytes(batch) + images);
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
  if (dataset != nullptr) allocate_images(device, batch_size);
  std::unique_lock lock(mutex_);
  try {
    submit_fills(group_);
  } catch (...) {
    stop_fills(lock);  // no destructor runs after this
    throw;
  }
}

void BatchRing::allocate_images(engine::Device& device, std::size_t batch_size) {
  const auto pixels = static_cast<std::size_t>(dataset_->description().image.elements());
  const std::size_t image_stride = image_bytes(batch_size, pixels);
  const std::size_t label_stride = label_bytes(batch_size);
  images_ = device.allocate_host(slots_.size() * image_stride);
  labels_ = device.allocate_host(slots_.size() * label_stride);
  for (std::size_t i = 0; i < slots_.size(); ++i) {
    slots_[i].images = reinterpret_cast<float*>(images_.as<std::byte>() + i * image_stride);
    slots_[i].labels = reinterpret_cast<std::int32_t*>(labels_.as<std::byte>() + i * label_stride);
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
  if (first_skipped_.empty()) first_skipped_ = slot.first_skipped;
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
  ARBALEST_CHECK(share.first >= 0 && share.count > 0 && share.first + share.count <= share.all);
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
  slot.batch = Batch{number, slot.indices.data(), slot.images, slot.labels,
                     static_cast<int>(std::ssize(slot.indices) - padding)};
  if (dataset_ != nullptr) read_examples(slot);
}

void BatchRing::read_examples(Slot& slot) const {
  const auto pixels = static_cast<std::size_t>(dataset_->description().image.elements());
  std::vector<std::size_t> skipped;
  slot.first_skipped.clear();
  for (std::size_t row = 0; row < slot.indices.size(); ++row) {
    if (slot.indices[row] != BatchOrder::kNoExample) {
      if (read_example(slot, row)) continue;
      skipped.push_back(row);
      slot.indices[row] = BatchOrder::kNoExample;
      --slot.batch.examples;
    }
    std::fill_n(slot.images + row * pixels, pixels, 0.0F);
    slot.labels[row] = engine::kNoLabel;
  }
  for (const std::size_t row : skipped) fill_skipped(slot, row);
  slot.skipped = std::ssize(skipped);
}

// Copies a real image to the skipped place: zeros would enter batch norm's statistics.
void BatchRing::fill_skipped(const Slot& slot, std::size_t row) const {
  if (slot.batch.examples == 0) return;
  const auto pixels = static_cast<std::size_t>(dataset_->description().image.elements());
  const std::size_t rows = slot.indices.size();
  std::size_t from = row;
  do {
    from = (from + rows - 1) % rows;
  } while (slot.indices[from] == BatchOrder::kNoExample);
  std::copy_n(slot.images + from * pixels, pixels, slot.images + row * pixels);
}

// Returns false if the example cannot be read and is skipped.
bool BatchRing::read_example(Slot& slot, std::size_t row) const {
  const auto pixels = static_cast<std::size_t>(dataset_->description().image.elements());
  const std::int64_t example = slot.indices[row];
  try {
    dataset_->read(example, {slot.batch.number, static_cast<std::uint32_t>(row)}, slot.images + row * pixels);
  } catch (const engine::Error& error) {
    if (error.kind() != engine::ErrorKind::kData || !dataset_->skips_unreadable()) throw;
    if (slot.first_skipped.empty()) slot.first_skipped = error.what();
    return false;
  }
  slot.labels[row] = dataset_->label(example);
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
