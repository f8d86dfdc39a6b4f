// Converts between oneDNN's memory descriptors and layouts.
#pragma once

#include <cstdint>
#include <optional>
#include <span>

#include <dnnl.hpp>

#include "engine/base/layout.h"

namespace arbalest::engine::cpu {

dnnl::memory::desc descriptor(const Layout& layout);
// The descriptor's dims must be the shape in canonical order.
Layout make_layout(const dnnl::memory::desc& descriptor);
// For descriptors in which oneDNN splits an axis: it describes weights of grouped convolutions as [groups, out /
// groups, in / groups, h, w].
Layout make_layout(const dnnl::memory::desc& descriptor, const Shape& shape);
// See Device::layout_of.
Layout layout_of(const Shape& shape, DType dtype, std::span<const std::int64_t> numbers);
dnnl::memory::data_type native_type(DType dtype);
DType dtype_of(const dnnl::memory::desc& tensor);
// Returns the layout with elements of another type: weights and their rounded copy have one layout.
dnnl::memory::desc with_type(const dnnl::memory::desc& tensor, DType dtype);
// Number of elements including all padding.
std::int64_t elements_of(const dnnl::memory::desc& tensor);
// Dense, in canonical order.
dnnl::memory::desc plain_descriptor(const Shape& shape, DType dtype);
dnnl::memory::dims dims(const Shape& shape);

// The strides of images [n, c, h, w]: element (n, c, h, w) is at
//   n * example + c / block * channel_block + c % block * channel + h * row + w * column.
struct ImageStrides {
  std::int64_t block;  // channels per block; 1: no blocks
  std::int64_t example, channel_block, channel, row, column;
};
// Returns none for images in another layout.
std::optional<ImageStrides> image_strides(const dnnl::memory::desc& images);

// Returns r if weights [units, features] are stored in blocks of r units and 16 features, [units / r, features / 16, 8,
// r, 2] with both quotients rounded up: for each pair of features the units, and for each unit the two features. None
// for other layouts.
std::optional<std::int64_t> units_of_paired_blocks(const dnnl::memory::desc& weights);

// Returns a descriptor with the layout of `images` ([n, c, h, w], or [n, f] in canonical order) but other extents; none
// if the layout is not common.
std::optional<dnnl::memory::desc> with_extents(const dnnl::memory::desc& images, const dnnl::memory::dims& extents);

}  // namespace arbalest::engine::cpu
