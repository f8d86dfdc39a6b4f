#include <immintrin.h>

#include <algorithm>
#include <cstdint>
#include <optional>
#include <type_traits>
#include <utility>

#include "engine/base/alignment.h"
#include "engine/cpu/lanes/kernels.h"
#include "engine/cpu/lanes/lanes.h"
#include "engine/cpu/onednn/layout.h"
#include "engine/cpu/onednn/program.h"
#include "engine/cpu/runtime/elements.h"
#include "engine/cpu/runtime/parallel.h"

namespace arbalest::engine::cpu {

namespace {

constexpr int kVector = 8;
typedef float Floats __attribute__((vector_size(kVector * sizeof(float)), may_alias));
typedef std::int32_t Numbers __attribute__((vector_size(kVector * sizeof(float)), may_alias));

template <typename Vector, typename Element>
Vector& vector_at(Element* address) {
  return *reinterpret_cast<Vector*>(address);
}

Floats load(const float* address) { return vector_at<const Floats>(address); }
Floats load(const BFloat16* address) {
  const auto halves = _mm_load_si128(reinterpret_cast<const __m128i*>(address));
  return reinterpret_cast<Floats>(_mm256_slli_epi32(_mm256_cvtepu16_epi32(halves), 16));
}

// Stores loaded numbers, or zeros, of bfloat16 without rounding.
void store_same(const Floats& numbers, float* address) { vector_at<Floats>(address) = numbers; }
void store_same(const Floats& numbers, BFloat16* address) {
  constexpr int kHalves = 0b1000;  // packing works on each half of a register
  const auto words = _mm256_srli_epi32(reinterpret_cast<__m256i>(numbers), 16);
  const auto packed = _mm256_permute4x64_epi64(_mm256_packus_epi32(words, words), kHalves);
  _mm_store_si128(reinterpret_cast<__m128i*>(address), _mm256_castsi256_si128(packed));
}

// Stores numbers below 256 of kLanes examples as one byte each. GCC's own conversion works on single numbers.
void store_bytes(const Numbers (&numbers)[2], std::uint8_t* target) {
  constexpr int kInOrder = 0b11011000;  // packing works on each half of a register
  const auto words = _mm256_permute4x64_epi64(
      _mm256_packus_epi32(reinterpret_cast<__m256i>(numbers[0]), reinterpret_cast<__m256i>(numbers[1])), kInOrder);
  _mm_store_si128(reinterpret_cast<__m128i*>(target),
                  _mm_packus_epi16(_mm256_castsi256_si128(words), _mm256_extracti128_si256(words, 1)));
}
Numbers load_bytes(const std::uint8_t* source) {
  return reinterpret_cast<Numbers>(_mm256_cvtepu8_epi32(_mm_loadl_epi64(reinterpret_cast<const __m128i*>(source))));
}

struct MaxPooling {
  MaxPooling(const Shape& input, const Shape& output, const Window& of)
      : planes(input[0] / kLanes * input[1]),
        height(input[2]),
        width(input[3]),
        output_height(output[2]),
        output_width(output[3]),
        window(of) {}

  // Whether every pixel is in exactly one window.
  bool tiles() const {
    const Window whole{window.kernel, window.kernel};
    return window == whole && height % window.kernel.height == 0 && width % window.kernel.width == 0;
  }

  // Calls body(pixel, tap) for the pixels of a window. A window of a common size that is completely inside becomes
  // straight code.
  template <std::int64_t common, typename Body>
  void for_window(std::int64_t y, std::int64_t x, const Body& body) const {
    const std::int64_t top = y * window.stride.height - window.padding.height;
    const std::int64_t left = x * window.stride.width - window.padding.width;
    if constexpr (common > 0) {
      if (top >= 0 && left >= 0 && top + common <= height && left + common <= width) {
#pragma GCC unroll 4
        for (std::int64_t i = 0; i < common; ++i) {
#pragma GCC unroll 4
          for (std::int64_t j = 0; j < common; ++j) {
            body((top + i) * width + left + j, static_cast<std::int32_t>(i * common + j));
          }
        }
        return;
      }
    }
    const std::int64_t bottom = std::min(height, top + window.kernel.height);
    const std::int64_t right = std::min(width, left + window.kernel.width);
    for (std::int64_t i = std::max<std::int64_t>(0, top); i < bottom; ++i) {
      for (std::int64_t j = std::max<std::int64_t>(0, left); j < right; ++j) {
        body(i * width + j, static_cast<std::int32_t>((i - top) * window.kernel.width + j - left));
      }
    }
  }

  // Calls the function whose template argument fits this window.
  template <typename Call>
  void choose(const Call& call) const {
    if (window.kernel == Extent2d{2, 2}) return call(std::integral_constant<std::int64_t, 2>{});
    if (window.kernel == Extent2d{3, 3}) return call(std::integral_constant<std::int64_t, 3>{});
    call(std::integral_constant<std::int64_t, 0>{});
  }

  std::int64_t planes, height, width, output_height, output_width;
  Window window;
};

// Pools one plane. winners: number of the tap with each maximum; may be null. `pooling` is passed by value: the
// compiler then knows that no store changes it.
template <std::int64_t common, typename T>
void maximize(const MaxPooling pooling, const T* input, T* output, std::uint8_t* winners) {
  for (std::int64_t y = 0; y < pooling.output_height; ++y) {
    for (std::int64_t x = 0; x < pooling.output_width; ++x) {
      Floats best[2] = {};
      Numbers winner[2] = {Numbers{} - 1, Numbers{} - 1};
      pooling.for_window<common>(y, x, [&](std::int64_t pixel, std::int32_t tap) {
        for (int half = 0; half < 2; ++half) {
          const Floats value = load(input + pixel * kLanes + half * kVector);
          // The first maximum wins. NaN always wins, so that it is found.
          const Numbers wins = (winner[half] < 0) | (value > best[half]) | (value != value);
          best[half] = wins ? value : best[half];
          winner[half] = wins ? Numbers{} + tap : winner[half];
        }
      });
      const std::int64_t target = (y * pooling.output_width + x) * kLanes;
      for (int half = 0; half < 2; ++half) store_same(best[half], output + target + half * kVector);
      if (winners != nullptr) store_bytes(winner, winners + target);
    }
  }
}

template <std::int64_t common>
void pass_back(const MaxPooling pooling, const float* gradient, const std::uint8_t* winners, float* input_gradient) {
  const bool tiled = pooling.tiles();
  if (!tiled) std::fill_n(input_gradient, pooling.height * pooling.width * kLanes, 0.0F);
  for (std::int64_t y = 0; y < pooling.output_height; ++y) {
    for (std::int64_t x = 0; x < pooling.output_width; ++x) {
      for (std::int64_t lane = 0; lane < kLanes; lane += kVector) {
        const std::int64_t source = (y * pooling.output_width + x) * kLanes + lane;
        const Floats arriving = load(gradient + source);
        const Numbers winner = load_bytes(winners + source);
        pooling.for_window<common>(y, x, [&](std::int64_t pixel, std::int32_t tap) {
          float* target = input_gradient + pixel * kLanes + lane;
          const Floats passed = winner == Numbers{} + tap ? arriving : Floats{};
          store_same(tiled ? passed : load(target) + passed, target);
        });
      }
    }
  }
}

// No pixel is in two windows (keeps_lanes), so nothing is added.
template <std::int64_t common>
void pass_back(const MaxPooling pooling, const BFloat16* gradient, const std::uint8_t* winners,
               BFloat16* input_gradient) {
  typedef std::uint16_t Halves __attribute__((vector_size(kLanes * sizeof(BFloat16)), may_alias));
  typedef std::uint8_t Bytes __attribute__((vector_size(kLanes), may_alias));
  if (!pooling.tiles()) std::fill_n(input_gradient, pooling.height * pooling.width * kLanes, BFloat16{});
  for (std::int64_t y = 0; y < pooling.output_height; ++y) {
    for (std::int64_t x = 0; x < pooling.output_width; ++x) {
      const std::int64_t source = (y * pooling.output_width + x) * kLanes;
      const Halves arriving = vector_at<const Halves>(gradient + source);
      const auto winner = __builtin_convertvector(vector_at<const Bytes>(winners + source), Halves);
      pooling.for_window<common>(y, x, [&](std::int64_t pixel, std::int32_t tap) {
        const Halves wins = winner == Halves{} + static_cast<std::uint16_t>(tap);
        vector_at<Halves>(input_gradient + pixel * kLanes) = wins & arriving;
      });
    }
  }
}

}  // namespace

std::unique_ptr<Operator> make_lane_pool2d(const Pool2dSpec& spec, const PrepareOptions& options,
                                           const dnnl::engine& engine) {
  const Shape& input = spec.input.shape();
  const Shape output = window_output_shape(input, spec.window, input[1]);
  const MaxPooling pooling(input, output, spec.window);
  const bool training = options.mode == OperatorMode::kTraining;
  const std::int64_t input_plane = input[2] * input[3] * kLanes;
  const std::int64_t output_plane = output[2] * output[3] * kLanes;
  OperatorTraits traits;
  traits.output = make_layout(lane_descriptor(output, spec.input.dtype()));
  if (training) traits.saved_bytes = aligned(static_cast<std::size_t>(output.elements()));

  Program forward(engine);
  std::optional<Program> backward;
  if (training) backward.emplace(engine);
  with_elements(spec.input.dtype(), [&]<typename T>(ElementKind<T>) {
    forward.add([=](const TaskContext& context, const Addresses& addresses) {
      const auto* read = static_cast<const T*>(addresses[Role::kInput]);
      auto* written = static_cast<T*>(addresses[Role::kOutput]);
      auto* winners = training ? static_cast<std::uint8_t*>(addresses[Role::kSaved]) : nullptr;
      for_each_part(context.threads, pooling.planes, [&](std::int64_t plane) {
        auto* of_plane = winners == nullptr ? nullptr : winners + plane * output_plane;
        pooling.choose([&](auto common) {
          maximize<common>(pooling, read + plane * input_plane, written + plane * output_plane, of_plane);
        });
      });
    });
    if (!training || !options.input_gradient) return;
    backward->add([=](const TaskContext& context, const Addresses& addresses) {
      const auto* gradient = static_cast<const T*>(addresses[Role::kOutputGradient]);
      const auto* winners = static_cast<const std::uint8_t*>(addresses[Role::kSaved]);
      auto* written = static_cast<T*>(addresses[Role::kInputGradient]);
      for_each_part(context.threads, pooling.planes, [&](std::int64_t plane) {
        pooling.choose([&](auto common) {
          pass_back<common>(pooling, gradient + plane * output_plane, winners + plane * output_plane,
                            written + plane * input_plane);
        });
      });
    });
  });
  return std::make_unique<ProgramOperator>(std::move(traits), std::move(forward), std::move(backward));
}

}  // namespace arbalest::engine::cpu
