#include "engine/ops/gather_examples.h"

#include <algorithm>
#include <span>

#include "engine/cpu/flat_tasks.h"
#include "engine/cpu/parallel.h"
#include "engine/error.h"

namespace arbalest::engine::cpu {

namespace {

void normalize(const std::uint8_t* __restrict pixels, const float* __restrict normalized, float* __restrict image,
               std::int64_t elements) {
  for (std::int64_t p = 0; p < elements; ++p) image[p] = normalized[pixels[p]];
}

// Below this much work the threads' meeting costs more than the copying.
int threads_for(const GatherExamples& task, const TaskContext& context) {
  return task.batch * task.elements < 16384 ? 1 : context.threads;
}

}  // namespace

void run_flat(const GatherExamples& task, const TaskContext& context) {
  const std::span indices(task.indices, static_cast<std::size_t>(task.batch));
  ARBALEST_CHECK(std::ranges::all_of(
      indices, [&](std::int64_t index) { return index == kNoExample || (index >= 0 && index < task.examples); }));
  for_each_part(threads_for(task, context), task.batch, [&](std::int64_t i) {
    const std::int64_t example = task.indices[i];
    float* image = task.images + i * task.elements;
    if (example == kNoExample) {
      std::fill_n(image, task.elements, 0.0F);
      task.labels[i] = kNoLabel;
    } else {
      normalize(task.pixels + example * task.elements, task.normalized, image, task.elements);
      task.labels[i] = task.classes[example];
    }
  });
}

}  // namespace arbalest::engine::cpu
