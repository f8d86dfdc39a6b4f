#include "engine/cpu/operators/reversed_weights.h"

#include <algorithm>
#include <cstdint>

#include "engine/cpu/onednn/layout.h"

namespace arbalest::engine::cpu {

Operand reverse_weights(Program& program, const Operand& weights, const dnnl::memory::desc& wanted) {
  const dnnl::memory::dims extents = weights.descriptor.dims();  // filters, channels, height, width
  const std::int64_t filters = extents[0], channels = extents[1], taps = extents[2] * extents[3];
  const Shape exchanged{channels, filters, extents[2], extents[3]};
  const Operand plain =
      program.read_as(weights, plain_descriptor({filters, channels, extents[2], extents[3]}, DType::kFloat32));
  const Operand reversed = program.scratch(plain_descriptor(exchanged, DType::kFloat32));
  program.add([=](const TaskContext&, const Addresses& addresses) {
    for (std::int64_t f = 0; f < filters; ++f) {
      for (std::int64_t c = 0; c < channels; ++c) {
        const float* from = plain.at<const float>(addresses) + (f * channels + c) * taps;
        std::reverse_copy(from, from + taps, reversed.at<float>(addresses) + (c * filters + f) * taps);
      }
    }
  });
  return program.read_as(reversed, wanted);
}

}  // namespace arbalest::engine::cpu
