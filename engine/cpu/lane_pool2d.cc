#include <algorithm>
#include <cstdint>
#include <optional>
#include <type_traits>
#include <utility>

#include "engine/alignment.h"
#include "engine/cpu/lane_kernels.h"
#include "engine/cpu/lanes.h"
#include "engine/cpu/layout.h"
#include "engine/cpu/parallel.h"
#include "engine/cpu/program.h"

namespace arbalest::engine::cpu {

namespace {

constexpr int kVector = 8;
typedef float Floats __attribute__((vector_size(kVector * sizeof(float)), may_alias));
typedef std::int32_t Numbers __attribute__((vector_size(kVector * sizeof(float)), may_alias));
typedef std::uint8_t Bytes __attribute__((vector_size(kVector), may_alias));

template <typename Vector, typename Element>
Vector& vector_at(Element* address) {
  return *reinterpret_cast<Vector*>(address);
}

struct MaxPooling {
  MaxPooling(const Shape& input, const Shape& output, const Window& of)
      : planes(input[0] / kLanes * input[1]),
        height(input[2]),
        width(input[3]),
        output_height(output[2]),
        output_width(output[3]),
        window(of) {}

  // Every pixel is in exactly one window.
  bool tiles() const {
    const Window whole{window.kernel, window.kernel};
    return window == whole && height % window.kernel.height == 0 && width % window.kernel.width == 0;
  }

  // Calls body(pixel, tap) for the pixels of a window. One that is wholly inside, of a common size, becomes straight
  // code.
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

  // One plane. winners: the tap that won each maximum; null where nobody asks.
  template <std::int64_t common>
  void forward(const float* input, float* output, std::uint8_t* winners) const {
    for (std::int64_t y = 0; y < output_height; ++y) {
      for (std::int64_t x = 0; x < output_width; ++x) {
        for (std::int64_t lane = 0; lane < kLanes; lane += kVector) {
          Floats best{};
          Numbers winner = Numbers{} - 1;
          for_window<common>(y, x, [&](std::int64_t pixel, std::int32_t tap) {
            const auto value = vector_at<const Floats>(input + pixel * kLanes + lane);
            // The first maximum wins; a NaN wins always, so that it is found.
            const Numbers wins = (winner < 0) | (value > best) | (value != value);
            best = wins ? value : best;
            winner = wins ? Numbers{} + tap : winner;
          });
          const std::int64_t target = (y * output_width + x) * kLanes + lane;
          vector_at<Floats>(output + target) = best;
          if (winners != nullptr) vector_at<Bytes>(winners + target) = __builtin_convertvector(winner, Bytes);
        }
      }
    }
  }

  template <std::int64_t common>
  void backward(const float* gradient, const std::uint8_t* winners, float* input_gradient) const {
    const bool tiled = tiles();
    if (!tiled) std::fill_n(input_gradient, height * width * kLanes, 0.0F);
    for (std::int64_t y = 0; y < output_height; ++y) {
      for (std::int64_t x = 0; x < output_width; ++x) {
        for (std::int64_t lane = 0; lane < kLanes; lane += kVector) {
          const std::int64_t source = (y * output_width + x) * kLanes + lane;
          const auto arriving = vector_at<const Floats>(gradient + source);
          const auto winner = __builtin_convertvector(vector_at<const Bytes>(winners + source), Numbers);
          for_window<common>(y, x, [&](std::int64_t pixel, std::int32_t tap) {
            auto& target = vector_at<Floats>(input_gradient + pixel * kLanes + lane);
            const Floats passed = winner == Numbers{} + tap ? arriving : Floats{};
            target = tiled ? passed : target + passed;
          });
        }
      }
    }
  }

  // The function's template argument for this window.
  template <typename Call>
  void choose(const Call& call) const {
    if (window.kernel == Extent2d{2, 2}) return call(std::integral_constant<std::int64_t, 2>{});
    if (window.kernel == Extent2d{3, 3}) return call(std::integral_constant<std::int64_t, 3>{});
    call(std::integral_constant<std::int64_t, 0>{});
  }

  std::int64_t planes, height, width, output_height, output_width;
  Window window;
};

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
  traits.output = make_layout(lane_descriptor(output));
  if (training) traits.saved_bytes = aligned(static_cast<std::size_t>(output.elements()));

  Program forward(engine);
  forward.add([=](const TaskContext& context, const Addresses& addresses) {
    const auto* read = static_cast<const float*>(addresses[Role::kInput]);
    auto* written = static_cast<float*>(addresses[Role::kOutput]);
    auto* winners = training ? static_cast<std::uint8_t*>(addresses[Role::kSaved]) : nullptr;
    for_each_part(context.threads, pooling.planes, [&](std::int64_t plane) {
      auto* of_plane = winners == nullptr ? nullptr : winners + plane * output_plane;
      pooling.choose([&](auto common) {
        pooling.forward<common>(read + plane * input_plane, written + plane * output_plane, of_plane);
      });
    });
  });
  if (!training) return std::make_unique<ProgramOperator>(std::move(traits), std::move(forward), std::nullopt);

  Program backward(engine);
  if (options.input_gradient) {
    backward.add([=](const TaskContext& context, const Addresses& addresses) {
      const auto* gradient = static_cast<const float*>(addresses[Role::kOutputGradient]);
      const auto* winners = static_cast<const std::uint8_t*>(addresses[Role::kSaved]);
      auto* written = static_cast<float*>(addresses[Role::kInputGradient]);
      for_each_part(context.threads, pooling.planes, [&](std::int64_t plane) {
        pooling.choose([&](auto common) {
          pooling.backward<common>(gradient + plane * output_plane, winners + plane * output_plane,
                                   written + plane * input_plane);
        });
      });
    });
  }
  return std::make_unique<ProgramOperator>(std::move(traits), std::move(forward), std::move(backward));
}

}  // namespace arbalest::engine::cpu
