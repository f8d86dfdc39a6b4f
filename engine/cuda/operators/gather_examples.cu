#include "engine/ops/gather_examples.h"

#include "engine/cuda/kernels/block.h"
#include "engine/cuda/runtime/flat_tasks.h"
#include "engine/elementwise/augmentation.h"

namespace arbalest::engine {

template <typename Visitor>
__host__ __device__ constexpr void visit_addresses(GatherExamples& of, Visitor&& visit) {
  visit(of.pixels);
  visit(of.classes);
  visit(of.normalized);
  visit(of.indices);
  visit(of.images);
  visit(of.labels);
  visit(of.step);
}

}  // namespace arbalest::engine

namespace arbalest::engine::cuda {

namespace {

constexpr int kBytes = 256;         // number of byte values
constexpr int kSharedChannels = 4;  // with more channels, tables stay in global memory

__device__ float normalize(const float* normalized, std::uint8_t pixel) { return normalized[pixel]; }
__device__ float4 normalize(const float* normalized, uchar4 pixels) {
  return {normalized[pixels.x], normalized[pixels.y], normalized[pixels.z], normalized[pixels.w]};
}

// Converts Pixels (one or four pixels) to Values. `area`: number of Values per channel of an image.
template <typename Pixels, typename Values>
__device__ void gather(const GatherExamples task, std::int64_t area) {
  __shared__ float shared[kSharedChannels * kBytes];
  const int channels = static_cast<int>(task.channels);
  for (int i = static_cast<int>(threadIdx.x); i < kBytes * channels && i < kBytes * kSharedChannels; i += kThreads) {
    shared[i] = task.normalized[i];
  }
  __syncthreads();
  const float* normalized = channels <= kSharedChannels ? shared : task.normalized;
  const auto* pixels = reinterpret_cast<const Pixels*>(task.pixels);
  auto* images = reinterpret_cast<Values*>(task.images);
  const std::int64_t width = task.channels * area;
  for (std::int64_t i = first_element(); i < task.batch * width; i += element_step()) {
    const std::int64_t place = i / width;
    const std::int64_t within = i - place * width;
    const std::int64_t example = task.indices[place];
    images[i] = example == kNoExample
                    ? Values{}
                    : normalize(normalized + within / area * kBytes, pixels[example * width + within]);
  }
  for (std::int64_t i = first_element(); i < task.batch; i += element_step()) {
    const std::int64_t example = task.indices[i];
    task.labels[i] = example == kNoExample ? kNoLabel : task.classes[example];
  }
}

// Each block writes the image of one row.
__device__ void gather_augmented(const GatherExamples task) {
  const std::int64_t row = blockIdx.x;
  const std::int64_t example = task.indices[row];
  const elementwise::ImageSize size{static_cast<std::int32_t>(task.height), static_cast<std::int32_t>(task.width)};
  __shared__ elementwise::AugmentedView view;
  if (threadIdx.x == 0) {
    view = elementwise::augmented_view(task.augmentation, task.step->task, static_cast<std::uint32_t>(row), size);
    task.labels[row] = example == kNoExample ? kNoLabel : task.classes[example];
  }
  __syncthreads();
  const auto elements = static_cast<std::int32_t>(elements_of(task));
  const auto area = static_cast<std::int32_t>(area_of(task));
  float* image = task.images + row * elements;
  for (auto i = static_cast<std::int32_t>(threadIdx.x); i < elements; i += kThreads) {
    if (example == kNoExample) {
      image[i] = 0.0F;
      continue;
    }
    const std::int32_t channel = i / area;
    const std::int32_t y = (i - channel * area) / size.width;
    const std::int32_t x = i - channel * area - y * size.width;
    const elementwise::ByteChannel stored{task.pixels + example * elements + channel * area,
                                          task.normalized + channel * kBytes};
    image[i] = elementwise::augmented_value(view, stored, size, y, x);
  }
}

}  // namespace

void run_flat(const GatherExamples& task, const StreamContext& context) {
  if (task.augmentation.changes_images()) {
    launch<gather_augmented>(task.batch, context.stream, task);
    return;
  }
  constexpr std::int64_t kVector = 4;
  const bool vectors = area_of(task) % kVector == 0;
  const std::int64_t area = vectors ? area_of(task) / kVector : area_of(task);
  const std::int64_t blocks = blocks_for(task.batch * task.channels * area);
  if (vectors) {
    launch<gather<uchar4, float4>>(blocks, context.stream, task, area);
  } else {
    launch<gather<std::uint8_t, float>>(blocks, context.stream, task, area);
  }
}

}  // namespace arbalest::engine::cuda
