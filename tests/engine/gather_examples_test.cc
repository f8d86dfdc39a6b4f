#include "engine/ops/gather_examples.h"

#include <cstring>
#include <numeric>
#include <random>

#include "engine/error.h"
#include "tests/engine/operator_run.h"
#include "tests/support/catch.h"
#include "tests/support/device_memory.h"

namespace arbalest::tests {
namespace {

using engine::Buffer;
using engine::GatherExamples;
using engine::kNoExample;
using engine::kNoLabel;
using Indices = std::vector<std::int64_t>;

constexpr std::int64_t kExamples = 50;

struct Gathered {
  Floats images;
  Labels labels;
};

// A dataset of random bytes on the test device, and what gathers from it.
class Rig {
 public:
  Rig(std::int64_t elements, std::int64_t batch) : elements_(elements), batch_(batch) {
    std::mt19937 random(3);
    for (std::uint8_t& pixel : pixels_) pixel = static_cast<std::uint8_t>(random());
    for (std::uint8_t& label : classes_) label = static_cast<std::uint8_t>(random());
    for (float& value : normalized_) value = static_cast<float>(random()) / 1e9F - 1.0F;
    pixels_there_ = upload(*device_, pixels_);
    classes_there_ = upload(*device_, classes_);
    normalized_there_ = upload(*device_, normalized_);
    indices_ = device_->allocate(static_cast<std::size_t>(batch) * sizeof(std::int64_t));
    // Other content, so that what is not written shows.
    images_ = upload(*device_, Floats(count(), 7.5F));
    labels_ = upload(*device_, Labels(static_cast<std::size_t>(batch), 99));
  }

  GatherExamples task() const {
    return {.pixels = pixels_there_.as<std::uint8_t>(),
            .classes = classes_there_.as<std::uint8_t>(),
            .normalized = normalized_there_.as<float>(),
            .indices = indices_.as<std::int64_t>(),
            .images = images_.as<float>(),
            .labels = labels_.as<std::int32_t>(),
            .batch = batch_,
            .elements = elements_,
            .examples = kExamples};
  }

  engine::Device& device() const { return *device_; }

  void set_indices(const Indices& indices) const {
    copy(*device_, indices_.data(), indices.data(), indices.size() * sizeof(std::int64_t));
  }

  Gathered result() const {
    return {download<float>(*device_, images_.data(), count()),
            download<std::int32_t>(*device_, labels_.data(), static_cast<std::size_t>(batch_))};
  }

  Gathered expected(const Indices& indices) const {
    Gathered all;
    for (const std::int64_t index : indices) {
      for (std::int64_t p = 0; p < elements_; ++p) {
        const auto pixel = static_cast<std::size_t>(index * elements_ + p);
        all.images.push_back(index == kNoExample ? 0.0F : normalized_[pixels_[pixel]]);
      }
      all.labels.push_back(index == kNoExample ? kNoLabel : classes_[static_cast<std::size_t>(index)]);
    }
    return all;
  }

 private:
  std::size_t count() const { return static_cast<std::size_t>(batch_ * elements_); }

  std::unique_ptr<engine::Device> device_ = open_test_device();
  std::int64_t elements_;
  std::int64_t batch_;
  std::vector<std::uint8_t> pixels_ = std::vector<std::uint8_t>(static_cast<std::size_t>(kExamples * elements_));
  std::vector<std::uint8_t> classes_ = std::vector<std::uint8_t>(kExamples);
  Floats normalized_ = Floats(256);
  Buffer pixels_there_, classes_there_, normalized_there_, indices_, images_, labels_;
};

// The same bits: a table's entry is copied, not computed.
void check_same(const Gathered& found, const Gathered& expected) {
  REQUIRE(found.images.size() == expected.images.size());
  CHECK(std::memcmp(found.images.data(), expected.images.data(), found.images.size() * sizeof(float)) == 0);
  CHECK(found.labels == expected.labels);
}

Indices random_indices(std::int64_t count, unsigned seed) {
  std::mt19937 random(seed);
  Indices indices;
  for (std::int64_t i = 0; i < count; ++i) {
    indices.push_back(static_cast<std::int64_t>(random() % (kExamples + 1)) - 1);  // kNoExample among them
  }
  return indices;
}

}  // namespace

TEST_CASE("a mini-batch is gathered by its indices, and padding is empty") {
  // Images of whole vectors and of others; little work, and enough to be shared out.
  const auto [elements, batch] = GENERATE(table<std::int64_t, std::int64_t>(
      {{1, 1}, {3, 7}, {16, 1}, {784, 32}, {783, 32}, {3072, 5}, {40'000, 3}, {4, 2'000}}));
  const int threads = GENERATE(1, 3);
  CAPTURE(elements, batch, threads);
  const Rig rig(elements, batch);
  Indices indices = random_indices(batch, 1);
  indices.front() = kExamples - 1;
  rig.set_indices(indices);
  const auto stream = rig.device().create_stream({"test", threads});
  stream->enqueue(rig.task(), "gather");
  stream->record().synchronize();
  check_same(rig.result(), rig.expected(indices));
}

TEST_CASE("a recorded gathering reads the indices that are there when it runs") {
  const Rig rig(784, 4);
  const auto stream = rig.device().create_stream({"test"});
  stream->begin_recording();
  stream->enqueue(rig.task(), "gather");
  const auto graph = stream->end_recording();
  for (const Indices& indices : {Indices{0, 1, 2, 3}, Indices{49, kNoExample, kNoExample, 49}, Indices{7, 7, 7, 0}}) {
    rig.set_indices(indices);
    stream->launch(*graph, "replay");
    stream->record().synchronize();
    check_same(rig.result(), rig.expected(indices));
  }
}

TEST_CASE("an index outside of the dataset is refused before anything is read") {
  const Rig rig(784, 4);
  if (rig.device().is_cuda()) return;  // a kernel cannot throw
  const std::int64_t wrong = GENERATE(as<std::int64_t>{}, kExamples, -2);
  rig.set_indices({0, 1, wrong, 2});
  const auto stream = rig.device().create_stream({"test"});
  stream->enqueue(rig.task(), "gather");
  CHECK_THROWS_WITH(stream->record().synchronize(), ContainsSubstring("gather"));
}

}  // namespace arbalest::tests
