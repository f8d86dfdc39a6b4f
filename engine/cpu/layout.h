// oneDNN's memory descriptors as layouts.
#pragma once

#include <dnnl.hpp>

#include "engine/layout.h"

namespace arbalest::engine::cpu {

dnnl::memory::desc descriptor(const Layout& layout);
// `shape` in canonical order must be the descriptor's dims.
Layout make_layout(const dnnl::memory::desc& descriptor);
// Where oneDNN cuts an axis in two: weights of grouped convolutions are [groups, out / groups, in / groups, h, w] to
// it.
Layout make_layout(const dnnl::memory::desc& descriptor, const Shape& shape);
// Dense, canonical order.
dnnl::memory::desc plain_descriptor(const Shape& shape, DType dtype);
dnnl::memory::dims dims(const Shape& shape);

}  // namespace arbalest::engine::cpu
