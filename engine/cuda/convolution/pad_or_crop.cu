#include "engine/cuda/convolution/pad_or_crop.h"

#include <limits>

#include "engine/base/error.h"
#include "engine/cuda/kernels/block.h"
#include "engine/elementwise/bfloat16.h"

namespace arbalest::engine::cuda {

namespace {

// Coordinates are 32-bit: 64-bit divisions would dominate the kernel's time.
struct Images {
  std::int32_t channels;
  std::int32_t height;
  std::int32_t width;
  bool channels_last;
};

struct Pixel {
  std::int32_t y;
  std::int32_t x;
};

template <typename From, typename To>
__device__ void copy_pixels(const From* from, Images from_images, To* to, Images to_images, Pixel first_pixel,
                            std::int64_t elements) {
  for (std::int64_t i = first_element(); i < elements; i += element_step()) {
    auto rest = static_cast<std::int32_t>(i);
    const auto take = [&](std::int32_t extent) {
      const std::int32_t coordinate = rest % extent;
      rest /= extent;
      return coordinate;
    };
    std::int32_t c = to_images.channels_last ? take(to_images.channels) : 0;
    const std::int32_t x = take(to_images.width) + first_pixel.x;
    const std::int32_t y = take(to_images.height) + first_pixel.y;
    if (!to_images.channels_last) c = take(to_images.channels);
    float value = 0.0F;
    if (y >= 0 && y < from_images.height && x >= 0 && x < from_images.width) {
      const std::int64_t first = std::int64_t{rest} * from_images.channels * from_images.height * from_images.width;
      const std::int64_t place = from_images.channels_last
                                     ? (std::int64_t{y} * from_images.width + x) * from_images.channels + c
                                     : (std::int64_t{c} * from_images.height + y) * from_images.width + x;
      value = elementwise::load(from[first + place]);
    }
    elementwise::store(value, to[i]);
  }
}

Images make_images(const Shape& shape, const Arrangement& arrangement) {
  return {static_cast<std::int32_t>(shape[1]), static_cast<std::int32_t>(shape[2]), static_cast<std::int32_t>(shape[3]),
          arrangement.order == Order::kChannelsLast};
}

template <typename From, typename To>
void launch_copy(const void* from, const Images& from_images, void* to, const Images& to_images,
                 const Pixel& first_pixel, std::int64_t elements, const TeamStream& stream) {
  launch<copy_pixels<From, To>>(blocks_for(elements), stream, static_cast<const From*>(from), from_images,
                                static_cast<To*>(to), to_images, first_pixel, elements);
}

}  // namespace

void pad_or_crop(const void* from, const Arrangement& from_arrangement, const Shape& from_shape, void* to,
                 const Arrangement& to_arrangement, const Shape& to_shape, const Extent2d& first,
                 const TeamStream& stream) {
  ARBALEST_CHECK(from_shape[0] == to_shape[0] && from_shape[1] == to_shape[1]);
  ARBALEST_CHECK(to_shape.elements() <= std::numeric_limits<std::int32_t>::max());
  const bool reads_halves = from_arrangement.dtype == DType::kBFloat16;
  const bool writes_halves = to_arrangement.dtype == DType::kBFloat16;
  const auto run = reads_halves    ? (writes_halves ? launch_copy<BFloat16, BFloat16> : launch_copy<BFloat16, float>)
                   : writes_halves ? launch_copy<float, BFloat16>
                                   : launch_copy<float, float>;
  const Pixel first_pixel{static_cast<std::int32_t>(first.height), static_cast<std::int32_t>(first.width)};
  run(from, make_images(from_shape, from_arrangement), to, make_images(to_shape, to_arrangement), first_pixel,
      to_shape.elements(), stream);
}

}  // namespace arbalest::engine::cuda
