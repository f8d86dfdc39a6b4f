// Converts tensors between the layouts of this backend, on the host.
#pragma once

#include "engine/base/layout.h"

namespace arbalest::engine::cuda {

// Copies elements in host memory from one layout to another. Each layout is float32 or bfloat16; conversion to bfloat16
// rounds. If the shapes differ, they have equal element counts, and one is the other's canonical order: a dense layer's
// weights are [o, f] in files and [o, c, h, w] if the layer reads images.
void convert_on_host(const Layout& from_layout, const void* from, const Layout& to_layout, void* to);

}  // namespace arbalest::engine::cuda
