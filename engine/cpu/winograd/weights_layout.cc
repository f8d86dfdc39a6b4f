#include "engine/cpu/winograd/weights_layout.h"

#include <algorithm>
#include <cmath>

#include "engine/cpu/winograd/blocked_kernels.h"

namespace arbalest::engine::cpu {

namespace {

class WinogradLayout final : public NativeLayout {
 public:
  bool equals(const NativeLayout& other) const override {
    return dynamic_cast<const WinogradLayout*>(&other) != nullptr;  // the shape tells the rest
  }
  std::vector<std::int64_t> numbers() const override { return {}; }
};

std::int64_t floats_of(const Shape& weights) { return kTileTerms * weights[1] * tile_blocks(weights[0]) * kTileBlock; }

// G of blocked_kernels.h: powers of the points, over the product of each point's distances from the others. The sixth
// point is infinity.
double kernel_factor(std::int64_t component, std::int64_t place, std::int64_t kernel) {
  constexpr double kDistances[] = {4.0, -6.0, -6.0, 24.0, 24.0};
  if (component == kTilePixels - 1) return place == kernel - 1 ? 1.0 : 0.0;
  return std::pow(static_cast<double>(kTilePoints[component]), static_cast<double>(place)) / kDistances[component];
}

// Component (i, k) of G g G', for g [kernel, kernel].
float kernel_component(const float* g, std::int64_t kernel, std::int64_t i, std::int64_t k) {
  double sum = 0.0;
  for (std::int64_t y = 0; y < kernel; ++y) {
    for (std::int64_t x = 0; x < kernel; ++x) {
      sum += kernel_factor(i, y, kernel) * static_cast<double>(g[kernel * y + x]) * kernel_factor(k, x, kernel);
    }
  }
  return static_cast<float>(sum);
}

}  // namespace

Layout winograd_weights_layout(const Shape& weights) {
  return {weights, DType::kFloat32, static_cast<std::size_t>(floats_of(weights)) * sizeof(float),
          std::make_shared<WinogradLayout>()};
}

bool is_winograd_weights(const Layout& layout) {
  return dynamic_cast<const WinogradLayout*>(layout.native()) != nullptr;
}

void transform_winograd_weights(const Shape& weights, const float* from, float* to) {
  const std::int64_t channels = weights[1], kernel = weights[2];
  const std::int64_t blocks = tile_blocks(weights[0]);
  std::fill_n(to, floats_of(weights), 0.0F);
  for (std::int64_t filter = 0; filter < weights[0]; ++filter) {
    std::int64_t first = 0;  // block of the filter's group
    while (first + blocks_of_group(first, blocks) <= filter / kTileBlock) first += blocks_of_group(first, blocks);
    const std::int64_t width = blocks_of_group(first, blocks) * kTileBlock;
    for (std::int64_t c = 0; c < channels; ++c) {
      const float* g = from + (filter * channels + c) * kernel * kernel;
      for (std::int64_t k = 0; k < kTileTerms; ++k) {
        float* const group = to + (k * blocks + first) * channels * kTileBlock;
        group[c * width + filter - first * kTileBlock] = kernel_component(g, kernel, k / kTilePixels, k % kTilePixels);
      }
    }
  }
}

}  // namespace arbalest::engine::cpu
