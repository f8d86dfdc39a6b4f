// Tensors between the layouts of this backend, on the host.
#pragma once

#include "engine/layout.h"

namespace arbalest::engine::cuda {

// Copies elements in host memory from one layout of a shape to another, of float32 or bfloat16 (rounded) each. Of
// unequal shapes with equally many elements, one is the canonical order of the other: a dense layer's weights are [o,
// f] in files and [o, c, h, w] where the layer reads images.
void convert_on_host(const Layout& from_layout, const void* from, const Layout& to_layout, void* to);

}  // namespace arbalest::engine::cuda
