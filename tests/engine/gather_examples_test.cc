#include "engine/ops/gather_examples.h"

#include <algorithm>
#include <cmath>
#include <cstring>
#include <numeric>
#include <random>

#include "engine/base/error.h"
#include "engine/elementwise/augmentation.h"
#include "tests/engine/operator_run.h"
#include "tests/support/catch.h"
#include "tests/support/device_memory.h"
#include "tests/support/thread_counts.h"

namespace arbalest::tests {
namespace {

using engine::Buffer;
using engine::GatherExamples;
using engine::kNoExample;
using engine::kNoLabel;
using engine::elementwise::AugmentedView;
using Doubles = std::vector<double>;
using Indices = std::vector<std::int64_t>;

constexpr std::int64_t kExamples = 50;

struct Gathered {
  Floats images;
  Labels labels;
};

// A dataset of random bytes on the test device, and the task that gathers from it.
class Rig {
 public:
  Rig(const engine::Shape& image, std::int64_t batch) : image_(image), batch_(batch) {
    std::mt19937 random(3);
    for (std::uint8_t& pixel : pixels_) pixel = static_cast<std::uint8_t>(random());
    for (std::int32_t& label : classes_) label = static_cast<std::int32_t>(random() % 100'000);
    for (float& value : normalized_) value = static_cast<float>(random()) / 1e9F - 1.0F;
    pixels_there_ = upload(*device_, pixels_);
    classes_there_ = upload(*device_, classes_);
    normalized_there_ = upload(*device_, normalized_);
    step_ = device_->allocate(sizeof(engine::StepParameters));
    indices_ = device_->allocate(static_cast<std::size_t>(batch) * sizeof(std::int64_t));
    // The outputs start with other values, so that elements which are not written are noticed.
    images_ = upload(*device_, Floats(count(), 7.5F));
    labels_ = upload(*device_, Labels(static_cast<std::size_t>(batch), 99));
  }

  GatherExamples task(const engine::Augmentation& augmentation = {}) const {
    return {.pixels = pixels_there_.as<std::uint8_t>(),
            .classes = classes_there_.as<std::int32_t>(),
            .normalized = normalized_there_.as<float>(),
            .indices = indices_.as<std::int64_t>(),
            .images = images_.as<float>(),
            .labels = labels_.as<std::int32_t>(),
            .batch = batch_,
            .channels = image_[0],
            .height = image_[1],
            .width = image_[2],
            .examples = kExamples,
            .augmentation = augmentation,
            .step = step_.as<engine::StepParameters>()};
  }

  engine::Device& device() const { return *device_; }

  void set_indices(const Indices& indices) const {
    copy(*device_, indices_.data(), indices.data(), indices.size() * sizeof(std::int64_t));
  }

  void set_task_number(std::uint64_t number) const {
    const engine::StepParameters step{.task = number};
    copy(*device_, step_.data(), &step, sizeof(step));
  }

  // The augmented image step by step: pad, crop, mirror, normalize, cut out.
  Floats expected_augmented(std::int64_t example, const AugmentedView& view, std::int64_t padding) const {
    const std::int64_t height = image_[1];
    const std::int64_t width = image_[2];
    const std::int64_t padded_width = width + 2 * padding;
    Floats image;
    for (std::int64_t c = 0; c < image_[0]; ++c) {
      std::vector<std::uint8_t> padded(static_cast<std::size_t>((height + 2 * padding) * padded_width));
      for (std::int64_t y = 0; y < height; ++y) {
        for (std::int64_t x = 0; x < width; ++x) {
          padded[static_cast<std::size_t>((y + padding) * padded_width + x + padding)] =
              pixels_[static_cast<std::size_t>(((example * image_[0] + c) * height + y) * width + x)];
        }
      }
      for (std::int64_t y = 0; y < height; ++y) {
        for (std::int64_t x = 0; x < width; ++x) {
          const std::int64_t column = view.is_mirrored ? width - 1 - x : x;
          const std::uint8_t pixel =
              padded[static_cast<std::size_t>((y + view.top + padding) * padded_width + column + view.left + padding)];
          const bool is_cut = y >= view.hole_top && y < view.hole_bottom && x >= view.hole_left && x < view.hole_right;
          image.push_back(is_cut ? 0.0F : normalized_[static_cast<std::size_t>(c) * 256 + pixel]);
        }
      }
    }
    return image;
  }

  // As above, but a rectangle is scaled to the image's size first. Each value is a weighted sum of all pixels. Weights
  // fall linearly to zero at a distance of one pixel. This computes in double precision, so the bits differ.
  Doubles expected_resized(std::int64_t example, const AugmentedView& view,
                           const engine::elementwise::Rectangle& box) const {
    const std::int64_t height = image_[1];
    const std::int64_t width = image_[2];
    const auto hat = [](double distance) { return std::max(0.0, 1.0 - std::abs(distance)); };
    const auto place = [](double from, double length, double index, double places) {
      return std::clamp(from + (index + 0.5) * length / places - 0.5, 0.0, places - 1.0);
    };
    Doubles image;
    for (std::int64_t c = 0; c < image_[0]; ++c) {
      const auto value = [&](std::int64_t y, std::int64_t x) {
        const auto pixel = static_cast<std::size_t>(((example * image_[0] + c) * height + y) * width + x);
        return double{normalized_[static_cast<std::size_t>(c) * 256 + pixels_[pixel]]};
      };
      for (std::int64_t y = 0; y < height; ++y) {
        for (std::int64_t x = 0; x < width; ++x) {
          const std::int64_t row = y + view.top;
          const std::int64_t column = (view.is_mirrored ? width - 1 - x : x) + view.left;
          double sum = 0.0;
          if (y >= view.hole_top && y < view.hole_bottom && x >= view.hole_left && x < view.hole_right) {
            image.push_back(0.0);
            continue;
          }
          if (row < 0 || row >= height || column < 0 || column >= width) {
            image.push_back(double{normalized_[static_cast<std::size_t>(c) * 256]});
            continue;
          }
          const double down = place(box.top, box.height, static_cast<double>(row), static_cast<double>(height));
          const double across = place(box.left, box.width, static_cast<double>(column), static_cast<double>(width));
          for (std::int64_t i = 0; i < height; ++i) {
            for (std::int64_t j = 0; j < width; ++j) {
              sum += hat(static_cast<double>(i) - down) * hat(static_cast<double>(j) - across) * value(i, j);
            }
          }
          image.push_back(sum);
        }
      }
    }
    return image;
  }

  Gathered result() const {
    return {download<float>(*device_, images_.data(), count()),
            download<std::int32_t>(*device_, labels_.data(), static_cast<std::size_t>(batch_))};
  }

  Gathered expected(const Indices& indices) const {
    Gathered all;
    for (const std::int64_t index : indices) {
      for (std::int64_t p = 0; p < image_.elements(); ++p) {
        const auto channel = static_cast<std::size_t>(p / (image_[1] * image_[2]));
        const auto pixel = static_cast<std::size_t>(index * image_.elements() + p);
        all.images.push_back(index == kNoExample ? 0.0F : normalized_[channel * 256 + pixels_[pixel]]);
      }
      all.labels.push_back(index == kNoExample ? kNoLabel : classes_[static_cast<std::size_t>(index)]);
    }
    return all;
  }

 private:
  std::size_t count() const { return static_cast<std::size_t>(batch_ * image_.elements()); }

  std::unique_ptr<engine::Device> device_ = open_test_device();
  engine::Shape image_;
  std::int64_t batch_;
  std::vector<std::uint8_t> pixels_ =
      std::vector<std::uint8_t>(static_cast<std::size_t>(kExamples * image_.elements()));
  std::vector<std::int32_t> classes_ = std::vector<std::int32_t>(kExamples);
  Floats normalized_ = Floats(static_cast<std::size_t>(image_[0]) * 256);
  Buffer pixels_there_, classes_there_, normalized_there_, step_, indices_, images_, labels_;
};

// The bits must be equal: a table's entry is copied, not computed.
void check_same(const Gathered& found, const Gathered& expected) {
  REQUIRE(found.images.size() == expected.images.size());
  CHECK(std::memcmp(found.images.data(), expected.images.data(), found.images.size() * sizeof(float)) == 0);
  CHECK(found.labels == expected.labels);
}

Indices random_indices(std::int64_t count, unsigned seed) {
  std::mt19937 random(seed);
  Indices indices;
  for (std::int64_t i = 0; i < count; ++i) {
    indices.push_back(static_cast<std::int64_t>(random() % (kExamples + 1)) - 1);  // includes kNoExample
  }
  return indices;
}

}  // namespace

TEST_CASE("a mini-batch is gathered by its indices, and padding is zero without a label") {
  // Some image sizes are multiples of a vector, some are not. Some tasks are small, some are divided between threads.
  const auto [image, batch] = GENERATE(table<engine::Shape, std::int64_t>({{{1, 1, 1}, 1},
                                                                           {{1, 1, 3}, 7},
                                                                           {{4, 2, 2}, 1},
                                                                           {{1, 28, 28}, 32},
                                                                           {{3, 9, 29}, 32},
                                                                           {{3, 32, 32}, 5},
                                                                           {{1, 200, 200}, 3},
                                                                           {{7, 6, 6}, 3},  // channels
                                                                           {{1, 2, 2}, 2'000}}));
  const int threads = GENERATE(from_range(thread_counts()));
  CAPTURE(engine::to_string(image), batch, threads);
  const Rig rig(image, batch);
  Indices indices = random_indices(batch, 1);
  indices.front() = kExamples - 1;
  rig.set_indices(indices);
  const auto stream = rig.device().create_stream({"test", threads});
  stream->enqueue(rig.task(), "gather");
  stream->record().synchronize();
  check_same(rig.result(), rig.expected(indices));
}

TEST_CASE("a recorded gather reads the indices at the time it runs") {
  const Rig rig({1, 28, 28}, 4);
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

TEST_CASE("a recorded gather augments each image by its place in the sequence of mini-batches") {
  const auto [image, augmentation] = GENERATE(table<engine::Shape, engine::Augmentation>({
      {{3, 32, 32}, {.padding = 4, .cutout = 8, .horizontal_flip = true, .seed = 7}},
      {{1, 28, 28}, {.padding = 0, .cutout = 0, .horizontal_flip = true, .seed = 7}},
      {{2, 9, 5}, {.padding = 4, .cutout = 0, .horizontal_flip = false, .seed = 1}},
      {{3, 70, 91}, {.padding = 0, .cutout = 17, .horizontal_flip = false, .seed = std::uint64_t{1} << 63}},
  }));
  const int threads = GENERATE(from_range(thread_counts()));
  CAPTURE(engine::to_string(image), threads);
  const Rig rig(image, 9);
  const Indices indices{5, 5, kNoExample, 0, 49, 5, 12, 13, 14};
  rig.set_indices(indices);
  const auto stream = rig.device().create_stream({"test", threads});
  stream->begin_recording();
  stream->enqueue(rig.task(augmentation), "gather");
  const auto graph = stream->end_recording();
  for (const std::uint64_t number : {std::uint64_t{0}, std::uint64_t{3}, std::uint64_t{5} << 32}) {
    rig.set_task_number(number);
    stream->launch(*graph, "replay");
    stream->record().synchronize();
    Gathered expected;
    for (std::uint32_t row = 0; row < indices.size(); ++row) {
      const AugmentedView view = engine::elementwise::augmented_view(
          augmentation, number, row, {static_cast<int>(image[1]), static_cast<int>(image[2])});
      const bool is_padding = indices[row] == kNoExample;
      const Floats values = is_padding ? Floats(static_cast<std::size_t>(image.elements()), 0.0F)
                                       : rig.expected_augmented(indices[row], view, augmentation.padding);
      expected.images.insert(expected.images.end(), values.begin(), values.end());
    }
    expected.labels = rig.expected(indices).labels;
    check_same(rig.result(), expected);
  }
}

TEST_CASE("a recorded gather scales random rectangles to the images' size") {
  const auto [image, augmentation] = GENERATE(table<engine::Shape, engine::Augmentation>({
      {{3, 16, 16}, {.random_crop = {.min_area = 0.08F, .log_max_aspect = 0.2876F}, .seed = 7}},
      {{2, 9, 15},
       {.random_crop = {.min_area = 0.3F, .log_max_aspect = 1.0F},
        .padding = 2,
        .cutout = 4,
        .horizontal_flip = true,
        .seed = 1}},
      {{1, 1, 4}, {.random_crop = {.min_area = 1.0F, .log_max_aspect = 0.1F}, .seed = 2}},  // none fits
  }));
  CAPTURE(engine::to_string(image));
  const Rig rig(image, 9);
  const Indices indices{5, 5, kNoExample, 0, 49, 5, 12, 13, 14};
  rig.set_indices(indices);
  const auto stream = rig.device().create_stream({"test", 3});
  stream->begin_recording();
  stream->enqueue(rig.task(augmentation), "gather");
  const auto graph = stream->end_recording();
  const engine::elementwise::ImageSize size{static_cast<int>(image[1]), static_cast<int>(image[2])};
  for (const std::uint64_t number : {std::uint64_t{0}, std::uint64_t{5} << 32}) {
    rig.set_task_number(number);
    stream->launch(*graph, "replay");
    stream->record().synchronize();
    const Gathered found = rig.result();
    CHECK(found.labels == rig.expected(indices).labels);
    int resized = 0;
    for (std::uint32_t row = 0; row < indices.size(); ++row) {
      const AugmentedView view = engine::elementwise::augmented_view(augmentation, number, row, size);
      engine::elementwise::Rectangle box =
          engine::elementwise::random_crop(augmentation.random_crop, augmentation.seed, number, row, size);
      resized += box.height > 0 ? 1 : 0;
      if (box.height == 0) box = {.top = 0, .left = 0, .height = size.height, .width = size.width};
      const bool is_padding = indices[row] == kNoExample;
      const Doubles expected = is_padding ? Doubles(static_cast<std::size_t>(image.elements()), 0.0)
                                          : rig.expected_resized(indices[row], view, box);
      std::size_t close = 0;
      for (std::size_t i = 0; i < expected.size(); ++i) {
        const double value = found.images[row * expected.size() + i];
        close += std::abs(value - expected[i]) < 1e-5 ? 1 : 0;  // values are in [-1, 3.3]
      }
      CHECK(close == expected.size());
    }
    CHECK((resized > 0) == (image[1] > 1));
  }
}

TEST_CASE("an index outside the dataset is refused") {
  const Rig rig({1, 28, 28}, 4);
  if (rig.device().is_cuda()) return;  // a kernel cannot throw
  const std::int64_t wrong = GENERATE(as<std::int64_t>{}, kExamples, -2);
  rig.set_indices({0, 1, wrong, 2});
  const auto stream = rig.device().create_stream({"test"});
  stream->enqueue(rig.task(), "gather");
  CHECK_THROWS_WITH(stream->record().synchronize(), ContainsSubstring("gather"));
}

}  // namespace arbalest::tests
