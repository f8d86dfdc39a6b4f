// oneDNN's memory descriptors as layouts.
#pragma once

#include <cstdint>
#include <optional>

#include <dnnl.hpp>

#include "engine/layout.h"

namespace arbalest::engine::cpu {

dnnl::memory::desc descriptor(const Layout& layout);
// `shape` in canonical order must be the descriptor's dims.
Layout make_layout(const dnnl::memory::desc& descriptor);
// Where oneDNN cuts an axis in two: weights of grouped convolutions are [groups, out / groups, in / groups, h, w] to
// it.
Layout make_layout(const dnnl::memory::desc& descriptor, const Shape& shape);
dnnl::memory::data_type native_type(DType dtype);
DType dtype_of(const dnnl::memory::desc& tensor);
// The same places for elements of another type: weights and what they are rounded to.
dnnl::memory::desc with_type(const dnnl::memory::desc& tensor, DType dtype);
// Of a tensor with all its padding.
std::int64_t elements_of(const dnnl::memory::desc& tensor);
// Dense, canonical order.
dnnl::memory::desc plain_descriptor(const Shape& shape, DType dtype);
dnnl::memory::dims dims(const Shape& shape);

// How images [n, c, h, w] lie: element (n, c, h, w) is at
//   n * example + c / block * channel_block + c % block * channel + h * row + w * column.
struct ImageStrides {
  std::int64_t block;  // channels; 1: each for itself
  std::int64_t example, channel_block, channel, row, column;
};
// None where they lie otherwise.
std::optional<ImageStrides> image_strides(const dnnl::memory::desc& images);

// r, where weights [units, features] lie in blocks of r units and 16 features, [units / r, features / 16, 8, r, 2]: of
// pairs of features the units, of them the two features. None where they lie otherwise.
std::optional<std::int64_t> units_of_paired_blocks(const dnnl::memory::desc& weights);

// What lies as `images` in all but the extents; none where images lie in no common order.
std::optional<dnnl::memory::desc> with_extents(const dnnl::memory::desc& images, const dnnl::memory::dims& extents);

}  // namespace arbalest::engine::cpu
