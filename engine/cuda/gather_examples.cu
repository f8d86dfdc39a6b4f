#include "engine/ops/gather_examples.h"

#include "engine/cuda/block.h"
#include "engine/cuda/flat_tasks.h"

namespace arbalest::engine::cuda {

namespace {

constexpr int kBytes = 256;  // different ones

__device__ float normalize(const float* normalized, std::uint8_t pixel) { return normalized[pixel]; }
__device__ float4 normalize(const float* normalized, uchar4 pixels) {
  return {normalized[pixels.x], normalized[pixels.y], normalized[pixels.z], normalized[pixels.w]};
}

// Each thread moves Pixels that become Values, one or four at a time; `width` of them are an image.
template <typename Pixels, typename Values>
__global__ void gather(const GatherExamples task, std::int64_t width) {
  __shared__ float normalized[kBytes];
  for (int byte = static_cast<int>(threadIdx.x); byte < kBytes; byte += kThreads) {
    normalized[byte] = task.normalized[byte];
  }
  __syncthreads();
  const auto* pixels = reinterpret_cast<const Pixels*>(task.pixels);
  auto* images = reinterpret_cast<Values*>(task.images);
  for (std::int64_t i = first_element(); i < task.batch * width; i += element_step()) {
    const std::int64_t place = i / width;
    const std::int64_t example = task.indices[place];
    images[i] = example == kNoExample ? Values{} : normalize(normalized, pixels[example * width + i - place * width]);
  }
  for (std::int64_t i = first_element(); i < task.batch; i += element_step()) {
    const std::int64_t example = task.indices[i];
    task.labels[i] = example == kNoExample ? kNoLabel : std::int32_t{task.classes[example]};
  }
}

}  // namespace

void run_flat(const GatherExamples& task, const StreamContext& context) {
  constexpr std::int64_t kVector = 4;
  const bool vectors = task.elements % kVector == 0;
  const std::int64_t width = vectors ? task.elements / kVector : task.elements;
  launch(vectors ? gather<uchar4, float4> : gather<std::uint8_t, float>, blocks_for(task.batch * width), context.stream,
         task, width);
}

}  // namespace arbalest::engine::cuda
