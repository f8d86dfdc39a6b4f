#include "engine/ops/gather_examples.h"

#include <algorithm>
#include <span>

#include "engine/base/error.h"
#include "engine/cpu/runtime/flat_tasks.h"
#include "engine/cpu/runtime/parallel.h"
#include "engine/elementwise/augmentation.h"

namespace arbalest::engine::cpu {

namespace {

constexpr std::int64_t kBytes = 256;  // number of byte values

void normalize(const std::uint8_t* __restrict pixels, const float* __restrict normalized, float* __restrict image,
               std::int64_t count) {
  for (std::int64_t p = 0; p < count; ++p) image[p] = normalized[pixels[p]];
}

// Writes the image for `row` of the mini-batch.
void read_augmented(const GatherExamples& task, std::int64_t row, float* image) {
  const elementwise::ImageSize size{static_cast<std::int32_t>(task.height), static_cast<std::int32_t>(task.width)};
  const elementwise::AugmentedView view =
      elementwise::augmented_view(task.augmentation, task.step->task, static_cast<std::uint32_t>(row), size);
  const std::uint8_t* pixels = task.pixels + task.indices[row] * elements_of(task);
  for (std::int64_t c = 0; c < task.channels; ++c, pixels += area_of(task)) {
    const elementwise::ByteChannel channel{pixels, task.normalized + c * kBytes};
    for (std::int32_t y = 0; y < size.height; ++y) {
      for (std::int32_t x = 0; x < size.width; ++x) {
        *image++ = elementwise::augmented_value(view, channel, size, y, x);
      }
    }
  }
}

void read_image(const GatherExamples& task, std::int64_t example, float* image) {
  const std::int64_t area = area_of(task);
  const std::uint8_t* pixels = task.pixels + example * elements_of(task);
  for (std::int64_t c = 0; c < task.channels; ++c) {
    normalize(pixels + c * area, task.normalized + c * kBytes, image + c * area, area);
  }
}

// For less work than this, synchronizing threads costs more than the copying.
int threads_for(const GatherExamples& task, const TaskContext& context) {
  return task.batch * elements_of(task) < 16384 ? 1 : context.threads;
}

}  // namespace

void run_flat(const GatherExamples& task, const TaskContext& context) {
  const std::span indices(task.indices, static_cast<std::size_t>(task.batch));
  ARBALEST_CHECK(std::ranges::all_of(
      indices, [&](std::int64_t index) { return index == kNoExample || (index >= 0 && index < task.examples); }));
  for_each_part(threads_for(task, context), task.batch, [&](std::int64_t i) {
    const std::int64_t example = task.indices[i];
    float* image = task.images + i * elements_of(task);
    if (example == kNoExample) {
      std::fill_n(image, elements_of(task), 0.0F);
      task.labels[i] = kNoLabel;
    } else {
      if (task.augmentation.changes_images()) {
        read_augmented(task, i, image);
      } else {
        read_image(task, example, image);
      }
      task.labels[i] = task.classes[example];
    }
  });
}

}  // namespace arbalest::engine::cpu
