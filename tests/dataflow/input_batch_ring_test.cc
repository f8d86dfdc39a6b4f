#include "dataflow/input/batches/batch_ring.h"

#include <algorithm>
#include <atomic>
#include <chrono>
#include <memory>
#include <random>
#include <set>
#include <string>
#include <thread>
#include <utility>
#include <vector>

#include "dataflow/input/images/stored_images.h"
#include "engine/backends/devices.h"
#include "engine/base/error.h"
#include "engine/ops/softmax_cross_entropy.h"
#include "tests/support/catch.h"
#include "tests/support/read_example.h"

namespace {

using arbalest::dataflow::Batch;
using arbalest::dataflow::BatchOrder;
using arbalest::dataflow::BatchRing;
using arbalest::dataflow::BatchShare;
using arbalest::dataflow::ByteImages;
using arbalest::dataflow::Dataset;
using arbalest::dataflow::image_input;
using arbalest::dataflow::InputDescription;
using arbalest::dataflow::InputTensor;
using arbalest::dataflow::SequentialOrder;
using arbalest::dataflow::ShuffledOrder;
using arbalest::engine::ErrorKind;
using arbalest::engine::kNoLabel;
using arbalest::engine::Shape;
using arbalest::engine::host::Pool;
using arbalest::tests::images_of;
using arbalest::tests::labels_of;
using arbalest::tests::read_image;

// All four bytes of image n are n; its label is n mod 10.
std::unique_ptr<ByteImages> numbered_images(std::size_t count) {
  std::vector<std::uint8_t> pixels(count * 4);
  std::vector<std::int32_t> labels(count);
  for (std::size_t i = 0; i < count; ++i) {
    std::fill_n(pixels.data() + i * 4, 4, static_cast<std::uint8_t>(i));
    labels[i] = static_cast<std::int32_t>(i % 10);
  }
  return std::make_unique<ByteImages>("numbered", image_input({1, 2, 2}, 10),
                                      arbalest::dataflow::Normalization{{0.0F}, {1.0F / 255.0F}}, std::move(pixels),
                                      std::move(labels));
}

// Whether the batch holds the examples of `order`. For a ring of indices, compares indices only.
bool is_right(const Batch& batch, BatchOrder& order) {
  std::vector<std::int64_t> indices(static_cast<std::size_t>(order.batch_size()));
  order.indices(batch.number, indices);
  if (!std::equal(indices.begin(), indices.end(), batch.indices)) return false;
  if (batch.tensors.empty()) return batch.examples == order.batch_size() - std::ranges::count(indices, -1);
  int examples = 0;
  for (std::size_t i = 0; i < indices.size(); ++i) {
    const bool real = indices[i] >= 0;
    const float pixel = real ? static_cast<float>(indices[i]) : 0.0F;
    const std::int32_t label = real ? static_cast<std::int32_t>(indices[i] % 10) : kNoLabel;
    for (std::size_t p = 0; p < 4; ++p) {
      if (std::abs(images_of(batch)[i * 4 + p] - pixel) > 1e-3F) return false;
    }
    if (labels_of(batch)[i] != label) return false;
    examples += real ? 1 : 0;
  }
  return batch.examples == examples;
}

class Rig {
 public:
  explicit Rig(int threads) : pool_(threads) {}

  arbalest::engine::Device& device() { return *device_; }
  Pool& pool() { return pool_; }

 private:
  std::unique_ptr<arbalest::engine::Device> device_ =
      arbalest::engine::open_device(arbalest::engine::parse_device("cpu"));
  Pool pool_;
};

enum class Content { kImages, kIndices };

std::unique_ptr<BatchRing> make_ring(Content content, const Dataset& data, BatchOrder& order, Rig& rig, int slots,
                                     std::uint64_t first = 0) {
  return content == Content::kImages ? std::make_unique<BatchRing>(data, order, rig.device(), rig.pool(), slots, first)
                                     : std::make_unique<BatchRing>(order, rig.device(), rig.pool(), slots, first);
}

// A dataset that fails to read example 5.
class FailingDataset final : public Dataset {
 public:
  const std::string& name() const noexcept override { return name_; }
  const InputDescription& description() const noexcept override { return description_; }
  std::int64_t size() const noexcept override { return 12; }
  void read(std::int64_t example, const arbalest::dataflow::ExamplePosition&,
            std::span<const InputTensor> features) const override {
    if (example == 5) arbalest::engine::fail(ErrorKind::kData, "record 5 is broken");
    features.front().as<float>().front() = 1.0F;
  }
  void read_label(std::int64_t, const InputTensor& label) const override { label.as<std::int32_t>().front() = 0; }

 private:
  std::string name_ = "failing";
  InputDescription description_ = image_input({1, 1, 1}, 10);
};

// A dataset whose image n has the value n. Reading one of the `unreadable` examples fails, so a batch ring skips it.
class SkippingDataset final : public Dataset {
 public:
  explicit SkippingDataset(std::set<std::int64_t> unreadable) : unreadable_(std::move(unreadable)) {}

  const std::string& name() const noexcept override { return name_; }
  const InputDescription& description() const noexcept override { return description_; }
  std::int64_t size() const noexcept override { return 14; }
  bool skips_unreadable() const noexcept override { return true; }
  void read(std::int64_t example, const arbalest::dataflow::ExamplePosition&,
            std::span<const InputTensor> features) const override {
    features.front().as<float>().front() = static_cast<float>(example);
    if (unreadable_.contains(example)) arbalest::engine::fail(ErrorKind::kData, "record {} is broken", example);
  }
  void read_label(std::int64_t example, const InputTensor& label) const override {
    label.as<std::int32_t>().front() = static_cast<std::int32_t>(example % 10);
  }

 private:
  std::set<std::int64_t> unreadable_;
  std::string name_ = "skipping";
  InputDescription description_ = image_input({1, 1, 1}, 10);
};

// A dataset that cannot be read before it is opened.
class ClosedDataset final : public Dataset {
 public:
  const std::string& name() const noexcept override { return name_; }
  const InputDescription& description() const noexcept override { return description_; }
  std::int64_t size() const noexcept override { return 12; }
  void read(std::int64_t, const arbalest::dataflow::ExamplePosition&,
            std::span<const InputTensor> features) const override {
    open.wait(false);
    features.front().as<float>().front() = 1.0F;
  }
  void read_label(std::int64_t, const InputTensor& label) const override { label.as<std::int32_t>().front() = 0; }

  std::atomic<bool> open{false};

 private:
  std::string name_ = "closed";
  InputDescription description_ = image_input({1, 1, 1}, 10);
};

// Counts calls, and opens the dataset when the consumer waits for it.
class Opener final : public arbalest::dataflow::InputObserver {
 public:
  explicit Opener(ClosedDataset& data) : data_(data) {}
  void before_fill() override { ++fills_begun; }
  void after_fill() override { ++fills_ended; }
  void before_wait() override {
    ++waits_begun;
    data_.open = true;
    data_.open.notify_all();
  }
  void after_wait() override { ++waits_ended; }

  std::atomic<int> fills_begun{0};
  std::atomic<int> fills_ended{0};
  int waits_begun = 0;
  int waits_ended = 0;

 private:
  ClosedDataset& data_;
};

}  // namespace

TEST_CASE("an observer sees when batches are filled, and when the consumer waits for one", "[input]") {
  ClosedDataset data;
  Opener opener(data);
  Rig rig(2);
  {
    SequentialOrder order(data.size(), 1);
    BatchRing ring(data, order, rig.device(), rig.pool(), 2);
    ring.set_observer(&opener);
    int batches = 0;
    while (const auto batch = ring.next()) {
      if (batches++ == 0) CHECK(opener.waits_begun == 1);
      ring.release(batch->number);
    }
    CHECK(batches == 12);
    CHECK(opener.waits_ended == opener.waits_begun);
  }
  CHECK(opener.fills_begun > 0);
  CHECK(opener.fills_ended == opener.fills_begun);
}

TEST_CASE("batches arrive in order under random delays, with several in use and released in any order", "[input]") {
  const int threads = GENERATE(1, 2, 4);
  const int slots = GENERATE(1, 2, 5, 16, 100);
  const Content content = GENERATE(Content::kImages, Content::kIndices);
  CAPTURE(threads, slots, content);
  Rig rig(threads);
  const auto data = numbered_images(100);
  ShuffledOrder order(100, 8, 3);
  ShuffledOrder reference(100, 8, 3);
  const auto ring = make_ring(content, *data, order, rig, slots);
  std::mt19937 random(static_cast<unsigned>(threads * 100 + slots));
  std::vector<Batch> out;
  for (std::uint64_t number = 0; number < 200; ++number) {
    const std::optional<Batch> batch = ring->next();
    REQUIRE(batch.has_value());
    CHECK(batch->number == number);
    CHECK(batch->tensors.size() == (content == Content::kIndices ? 0 : 2));
    for (const InputTensor& tensor : batch->tensors) {
      CHECK(reinterpret_cast<std::uintptr_t>(tensor.bytes().data()) % 64 == 0);
    }
    out.push_back(*batch);  // the oldest comes first
    if (random() % 8 == 0) std::this_thread::sleep_for(std::chrono::microseconds(random() % 300));
    // The next batch needs the slot of batch number - slots, which must have been released.
    const auto in_the_way = [&] { return out.front().number + static_cast<std::uint64_t>(slots) <= number + 1; };
    while (!out.empty() && (in_the_way() || random() % 3 != 0)) {
      const std::size_t which = in_the_way() ? 0 : random() % out.size();
      CHECK(is_right(out[which], reference));  // it was not overwritten
      ring->release(out[which].number);
      out.erase(out.begin() + static_cast<std::ptrdiff_t>(which));
    }
  }
}

TEST_CASE("augmentation depends on the place in the sequence, not on the thread that fills the batch", "[input]") {
  const int threads = GENERATE(1, 4);
  Rig rig(threads);
  const auto data = numbered_images(20);
  data->augment({.padding = 1, .cutout = 1, .horizontal_flip = true, .seed = 9});
  ShuffledOrder order(20, 4, 3);
  BatchRing ring(*data, order, rig.device(), rig.pool(), 8);
  bool differs = false;
  for (std::uint64_t number = 0; number < 30; ++number) {
    const Batch batch = ring.next().value();
    for (std::uint32_t row = 0; row < 4; ++row) {
      std::vector<float> expected(4);
      read_image(*data, batch.indices[row], {number, row}, expected.data());
      CHECK(std::equal(expected.begin(), expected.end(), images_of(batch) + row * 4));
      std::vector<float> elsewhere(4);
      read_image(*data, batch.indices[row], {number + 1, row}, elsewhere.data());
      differs = differs || elsewhere != expected;
    }
    ring.release(number);
  }
  CHECK(differs);
}

TEST_CASE("batches may be released by other threads", "[input]") {
  Rig rig(2);
  const auto data = numbered_images(64);
  ShuffledOrder order(64, 4, 1);
  ShuffledOrder reference(64, 4, 1);
  BatchRing ring(*data, order, rig.device(), rig.pool(), 8);
  for (int round = 0; round < 100; ++round) {
    std::vector<std::jthread> learners;
    std::vector<char> right(4, 0);
    for (std::size_t learner = 0; learner < 4; ++learner) {
      const Batch batch = ring.next().value();
      learners.emplace_back([&ring, &reference, &right, learner, batch] {
        right[learner] = is_right(batch, reference);
        ring.release(batch.number);
      });
    }
    learners.clear();
    CHECK(right == std::vector<char>(4, 1));
  }
}

TEST_CASE("a consumer that holds all slots but one gets its next batch", "[input]") {
  Rig rig(1);
  const auto data = numbered_images(64);
  ShuffledOrder order(64, 4, 1);
  BatchRing ring(*data, order, rig.device(), rig.pool(), 8);
  for (std::uint64_t number = 0; number < 7; ++number) CHECK(ring.next()->number == number);
  for (std::uint64_t number = 7; number < 100; ++number) {
    CHECK(ring.next()->number == number);
    ring.release(number - 7);  // fewer slots are free than one task fills
  }
}

TEST_CASE("a ring tells how many batches it hands out before one must be released", "[input]") {
  const auto data = numbered_images(20);
  ShuffledOrder order(20, 2, 1);
  Rig rig(2);
  const auto ring = make_ring(Content::kImages, *data, order, rig, 4);
  CHECK(ring->can_hand_out(4));
  CHECK_FALSE(ring->can_hand_out(5));
  for (int i = 0; i < 3; ++i) ring->next();
  CHECK(ring->can_hand_out(1));
  CHECK_FALSE(ring->can_hand_out(2));
  ring->release(1);
  CHECK_FALSE(ring->can_hand_out(2));  // batch 0 comes first
  ring->next();
  CHECK_FALSE(ring->can_hand_out(1));
  ring->release(0);
  CHECK(ring->can_hand_out(2));
  CHECK_FALSE(ring->can_hand_out(3));
  CHECK(ring->next()->number == 4);
  for (const std::uint64_t number : {2, 3, 4}) ring->release(number);
}

TEST_CASE("an evaluation ends, with the last batch padded, and can be run again", "[input]") {
  const std::int64_t examples = GENERATE(1, 7, 8, 9, 40, 45);
  const int slots = GENERATE(1, 3, 8, 16);
  const Content content = GENERATE(Content::kImages, Content::kIndices);
  CAPTURE(examples, slots, content);
  Rig rig(2);
  const auto data = numbered_images(static_cast<std::size_t>(examples));
  SequentialOrder order(examples, 8);
  const auto ring = make_ring(content, *data, order, rig, slots);
  for (int run = 0; run < 3; ++run) {
    int seen = 0;
    std::uint64_t batches = 0;
    while (const std::optional<Batch> batch = ring->next()) {
      CHECK(is_right(*batch, order));
      seen += batch->examples;
      ++batches;
      ring->release(batch->number);
    }
    CHECK(seen == examples);
    CHECK(batches == order.batches());
    CHECK_FALSE(ring->next().has_value());
    ring->restart();
  }
}

TEST_CASE("a ring may start, and restart, in the middle of the sequence", "[input]") {
  const Content content = GENERATE(Content::kImages, Content::kIndices);
  Rig rig(2);
  const auto data = numbered_images(100);
  ShuffledOrder order(100, 8, 3);
  ShuffledOrder reference(100, 8, 3);
  const auto ring = make_ring(content, *data, order, rig, 4, 1001);
  for (const std::uint64_t first : {std::uint64_t{1001}, std::uint64_t{0}, std::uint64_t{17}}) {
    if (first != 1001) ring->restart(first);
    for (std::uint64_t number = first; number < first + 10; ++number) {
      const Batch batch = ring->next().value();
      CHECK(batch.number == number);
      CHECK(is_right(batch, reference));
      ring->release(number);
    }
  }
}

TEST_CASE("the shares of several rings make up the sequence, whatever its length", "[input]") {
  const int slots = GENERATE(1, 3, 8);
  const std::int64_t examples = GENERATE(1, 40, 61, 97);
  const std::uint64_t begin = GENERATE(0, 2);
  CAPTURE(slots, examples, begin);
  Rig rig(2);
  const auto data = numbered_images(static_cast<std::size_t>(examples));
  SequentialOrder order(examples, 4);
  const std::uint64_t moved = GENERATE(0, 1, 2, 3, 7);
  const BatchShare shares[] = {BatchShare{.first = 0, .count = 1, .all = 4}.moved(moved),
                               BatchShare{.first = 1, .count = 3, .all = 4}.moved(moved)};
  std::vector<std::uint64_t> seen;
  for (const BatchShare& share : shares) {
    const auto ring = make_ring(Content::kImages, *data, order, rig, slots);
    ring->restart(begin, share);
    std::vector<std::uint64_t> own;
    while (const std::optional<Batch> batch = ring->next()) {
      CHECK(is_right(*batch, order));
      const int place = static_cast<int>((batch->number - begin) % 4);
      CHECK((place - share.first + share.all) % share.all < share.count);
      own.push_back(batch->number);
      ring->release(batch->number);
    }
    CHECK(std::ranges::is_sorted(own));
    seen.insert(seen.end(), own.begin(), own.end());
  }
  std::ranges::sort(seen);
  std::vector<std::uint64_t> all;
  for (std::uint64_t number = begin; number < *order.batches(); ++number) all.push_back(number);
  CHECK(seen == all);
}

TEST_CASE("a failed read is thrown when its batch is due, and again", "[input]") {
  Rig rig(2);
  const FailingDataset data;
  SequentialOrder order(12, 2);
  BatchRing ring(data, order, rig.device(), rig.pool(), 4);
  for (std::uint64_t number = 0; number < 2; ++number) {
    CHECK(ring.next()->number == number);
    ring.release(number);
  }
  CHECK_THROWS_WITH(ring.next(), "record 5 is broken");
  CHECK_THROWS_WITH(ring.next(), "record 5 is broken");
}

TEST_CASE("a skipped example is replaced by the nearest readable one before it, without a label", "[input]") {
  Rig rig(3);
  const SkippingDataset data({0, 2, 3, 4, 5, 6, 7, 13});
  SequentialOrder order(14, 4);
  BatchRing ring(data, order, rig.device(), rig.pool(), 3);
  const std::vector<std::vector<float>> images = {
      {1, 1, 1, 1},    // only one example is readable
      {0, 0, 0, 0},    // no example is readable
      {8, 9, 10, 11},  // all examples are readable
      {12, 12, 0, 0}   // the padding stays zero
  };
  const std::vector<std::vector<std::int32_t>> labels = {{kNoLabel, 1, kNoLabel, kNoLabel},
                                                         {kNoLabel, kNoLabel, kNoLabel, kNoLabel},
                                                         {8, 9, 0, 1},
                                                         {2, kNoLabel, kNoLabel, kNoLabel}};
  const std::vector<int> examples = {1, 0, 4, 1};
  for (std::size_t number = 0; number < 4; ++number) {
    CAPTURE(number);
    const Batch batch = ring.next().value();
    CHECK(std::vector<float>(images_of(batch), images_of(batch) + 4) == images[number]);
    CHECK(std::vector<std::int32_t>(labels_of(batch), labels_of(batch) + 4) == labels[number]);
    CHECK(batch.examples == examples[number]);
    ring.release(batch.number);
  }
  CHECK(ring.skipped() == 8);
  CHECK(ring.first_skipped() == "record 0 is broken");
  // The search wraps around from the first place of the batch to the last, over other skipped examples.
  const SkippingDataset others({0, 1, 2});
  BatchRing cyclic(others, order, rig.device(), rig.pool(), 3);
  CHECK(cyclic.first_skipped().empty());
  const Batch batch = cyclic.next().value();
  CHECK(std::vector<float>(images_of(batch), images_of(batch) + 4) == std::vector<float>{3, 3, 3, 3});
}

TEST_CASE("a ring that is destroyed early waits for its tasks", "[input]") {
  Rig rig(4);
  const auto data = numbered_images(100);
  for (int repetition = 0; repetition < 200; ++repetition) {
    ShuffledOrder order(100, 50, 3);
    const auto ring = make_ring(repetition % 4 < 2 ? Content::kImages : Content::kIndices, *data, order, rig, 16);
    if (repetition % 2 == 0) ring->next();
  }
}

TEST_CASE("a batch that is not in use cannot be released", "[input]") {
  Rig rig(1);
  const auto data = numbered_images(100);
  ShuffledOrder order(100, 8, 3);
  BatchRing ring(*data, order, rig.device(), rig.pool(), 4);
  ring.next();
  CHECK_THROWS(ring.release(1));
  CHECK_THROWS(ring.release(4));  // uses the same slot as batch 0
  ring.release(0);
  CHECK_THROWS(ring.release(0));
}
