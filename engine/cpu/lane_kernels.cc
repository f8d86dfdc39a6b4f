#include "engine/cpu/lane_kernels.h"

#include "engine/cpu/parallel.h"

namespace arbalest::engine::cpu {

const LaneKernels& lane_kernels() { return __builtin_cpu_supports("avx512f") ? kAvx512LaneKernels : kAvx2LaneKernels; }

const LaneKernels* bfloat16_lane_kernels() {
  return __builtin_cpu_supports("avx512bf16") ? &kAvx512Bf16LaneKernels : nullptr;
}

namespace {

typedef std::uint32_t Pair __attribute__((may_alias));

void pack(std::int64_t count, const BFloat16* first, const BFloat16* second, Pair* to) {
  for (std::int64_t i = 0; i < count; ++i) to[i] = first[i].bits | static_cast<std::uint32_t>(second[i].bits) << 16U;
}
void pack_alone(std::int64_t count, const BFloat16* first, Pair* to) {
  for (std::int64_t i = 0; i < count; ++i) to[i] = first[i].bits;
}

}  // namespace

void pack_planes(int threads, std::int64_t groups, std::int64_t planes, std::int64_t plane, const BFloat16* from,
                 LaneUnit* to) {
  const std::int64_t pairs = (planes + 1) / 2;
  for_each_part(threads, groups * pairs, [&](std::int64_t part) {
    const std::int64_t first = part % pairs * 2;
    const BFloat16* source = from + (part / pairs * planes + first) * plane;
    auto* target = reinterpret_cast<Pair*>(to + part * plane);
    if (first + 1 < planes) {
      pack(plane, source, source + plane, target);
    } else {
      pack_alone(plane, source, target);
    }
  });
}

void pack_neighbors(int threads, std::int64_t planes, std::int64_t plane, const BFloat16* from, LaneUnit* to) {
  const std::int64_t inner = plane - kLanes;
  for_each_part(threads, planes, [&](std::int64_t i) {
    const BFloat16* source = from + i * plane;
    auto* target = reinterpret_cast<Pair*>(to + i * plane);
    pack(inner, source, source + kLanes, target);
    pack_alone(kLanes, source + inner, target + inner);
  });
}

}  // namespace arbalest::engine::cpu
