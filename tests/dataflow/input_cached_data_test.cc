#include "dataflow/input/batches/cached_data.h"

#include <cstring>
#include <vector>

#include "dataflow/input/batches/batch_order.h"
#include "dataflow/input/images/stored_images.h"
#include "engine/backends/devices.h"
#include "engine/base/error.h"
#include "tests/support/catch.h"
#include "tests/support/read_example.h"

namespace {

using namespace arbalest;
using dataflow::ByteImages;

constexpr std::size_t kPixels = 2 * 3 * 5;

ByteImages every_byte() {
  std::vector<std::uint8_t> pixels(20 * kPixels);
  for (std::size_t i = 0; i < pixels.size(); ++i) pixels[i] = static_cast<std::uint8_t>(i * 7);
  std::vector<std::int32_t> labels(20);
  for (std::size_t i = 0; i < labels.size(); ++i) labels[i] = 1000 * static_cast<std::int32_t>(i);
  return {"every byte",
          dataflow::image_input({2, 3, 5}, 20'000),
          {{0.1307F, 0.5F}, {0.3081F, 0.25F}},
          std::move(pixels),
          std::move(labels)};
}

class WithoutBytes final : public dataflow::Dataset {
 public:
  const std::string& name() const noexcept override { return name_; }
  const dataflow::InputDescription& description() const noexcept override { return description_; }
  std::int64_t size() const noexcept override { return 1; }
  void read(std::int64_t, const dataflow::ExamplePosition&,
            std::span<const dataflow::InputTensor> features) const override {
    features.front().as<float>().front() = 1.0F;
  }
  void read_label(std::int64_t, const dataflow::InputTensor& label) const override {
    label.as<std::int32_t>().front() = 0;
  }

 private:
  std::string name_ = "without bytes";
  dataflow::InputDescription description_ = dataflow::image_input({1, 1, 1}, 10);
};

}  // namespace

TEST_CASE("a CPU device gathers from the dataset's memory the same bits that the dataset reads", "[input]") {
  const auto device = engine::open_device(engine::parse_device("cpu"));
  const ByteImages data = every_byte();
  const dataflow::CachedData cached(data, *device);
  const std::vector<std::int64_t> indices{3, 19, dataflow::BatchOrder::kNoExample, 0, 19};
  std::vector<float> images(indices.size() * kPixels, 7.5F);
  std::vector<std::int32_t> labels(indices.size(), 99);
  const engine::GatherExamples task = cached.gather({.indices = indices.data(),
                                                     .images = images.data(),
                                                     .labels = labels.data(),
                                                     .batch = static_cast<std::int64_t>(indices.size())});
  CHECK(task.pixels == data.pixels().data());
  const auto stream = device->create_stream({"test"});
  stream->enqueue(task, "gather");
  stream->record().synchronize();
  for (std::size_t i = 0; i < indices.size(); ++i) {
    std::vector<float> expected(kPixels, 0.0F);
    std::int32_t label = engine::kNoLabel;
    if (indices[i] >= 0) {
      tests::read_image(data, indices[i], {}, expected.data());
      label = dataflow::class_of(data, indices[i]);
    }
    CHECK(std::memcmp(images.data() + i * kPixels, expected.data(), kPixels * sizeof(float)) == 0);
    CHECK(labels[i] == label);
  }
}

TEST_CASE("augmentation gives the same bits on the device and in the dataset", "[input]") {
  const auto device = engine::open_device(engine::parse_device("cpu"));
  ByteImages data = every_byte();
  const engine::RandomResizedCrop random_crop{.min_area = 0.2F, .log_max_aspect = 0.5F};
  const engine::Augmentation augmentation =
      GENERATE_COPY(engine::Augmentation{.padding = 2, .cutout = 2, .horizontal_flip = true, .seed = 5},
                    engine::Augmentation{.random_crop = random_crop, .seed = 5});
  data.augment(augmentation);
  const dataflow::CachedData cached(data, *device);
  const std::vector<std::int64_t> indices{3, 19, 3, 0, 19, 3, 3};
  std::vector<float> images(indices.size() * kPixels, 7.5F);
  std::vector<std::int32_t> labels(indices.size(), 99);
  const engine::StepParameters step{.task = 123};
  dataflow::GatherBuffers buffers{.indices = indices.data(),
                                  .images = images.data(),
                                  .labels = labels.data(),
                                  .batch = static_cast<std::int64_t>(indices.size()),
                                  .step = &step};
  const auto stream = device->create_stream({"test"});
  stream->enqueue(cached.gather(buffers), "gather");
  stream->record().synchronize();
  std::size_t as_stored = 0;
  for (std::uint32_t i = 0; i < indices.size(); ++i) {
    std::vector<float> expected(kPixels);
    tests::read_image(data, indices[i], {123, i}, expected.data());
    CHECK(std::memcmp(images.data() + i * kPixels, expected.data(), kPixels * sizeof(float)) == 0);
    std::vector<float> stored(kPixels);
    tests::read_image(every_byte(), indices[i], {}, stored.data());
    as_stored += stored == expected ? 1 : 0;
  }
  CHECK(as_stored < indices.size());
  buffers.step = nullptr;
  CHECK_THROWS_AS(cached.gather(buffers), engine::Error);
}

TEST_CASE("a dataset that has no bytes in memory cannot be cached", "[input]") {
  const auto device = engine::open_device(engine::parse_device("cpu"));
  CHECK_THROWS_AS(dataflow::CachedData(WithoutBytes(), *device), engine::Error);
}
