#include "engine/cpu/lane_kernels.h"

#include "engine/cpu/parallel.h"

namespace arbalest::engine::cpu {

const LaneKernels& lane_kernels() { return __builtin_cpu_supports("avx512f") ? kAvx512LaneKernels : kAvx2LaneKernels; }

const LaneKernels* bfloat16_lane_kernels() {
  return __builtin_cpu_supports("avx512bf16") ? &kAvx512Bf16LaneKernels : nullptr;
}

void pack_planes(int threads, std::int64_t groups, std::int64_t planes, std::int64_t plane, const BFloat16* from,
                 LaneUnit* to) {
  typedef std::uint32_t Pair __attribute__((may_alias));
  const std::int64_t pairs = (planes + 1) / 2;
  for_each_part(threads, groups * pairs, [&](std::int64_t part) {
    const std::int64_t first = part % pairs * 2;
    const BFloat16* source = from + (part / pairs * planes + first) * plane;
    auto* target = reinterpret_cast<Pair*>(to + part * plane);
    if (first + 1 < planes) {
      for (std::int64_t i = 0; i < plane; ++i) {
        target[i] = source[i].bits | static_cast<std::uint32_t>(source[plane + i].bits) << 16U;
      }
    } else {
      for (std::int64_t i = 0; i < plane; ++i) target[i] = source[i].bits;
    }
  });
}

}  // namespace arbalest::engine::cpu
