#include "engine/cpu/lanes/kernels.h"

#include "engine/cpu/onednn/instruction_sets.h"
#include "engine/cpu/runtime/parallel.h"

namespace arbalest::engine::cpu {

const LaneKernels& lane_kernels() { return vector_instructions().avx512 ? kAvx512LaneKernels : kAvx2LaneKernels; }

const LaneKernels* bfloat16_lane_kernels() {
  return vector_instructions().avx512_bf16 ? &kAvx512Bf16LaneKernels : nullptr;
}

void pack(std::int64_t count, const BFloat16* first, const BFloat16* second, LaneUnit* to) {
  typedef std::uint32_t Pair __attribute__((may_alias));
  auto* pairs = reinterpret_cast<Pair*>(to);
  if (second == nullptr) {
    for (std::int64_t i = 0; i < count; ++i) pairs[i] = first[i].bits;
    return;
  }
  for (std::int64_t i = 0; i < count; ++i) pairs[i] = first[i].bits | static_cast<std::uint32_t>(second[i].bits) << 16U;
}

void pack_planes(int threads, std::int64_t groups, std::int64_t planes, std::int64_t plane, const BFloat16* from,
                 LaneUnit* to) {
  const std::int64_t pairs = (planes + 1) / 2;
  for_each_part(threads, groups * pairs, [&](std::int64_t part) {
    const std::int64_t first = part % pairs * 2;
    const BFloat16* source = from + (part / pairs * planes + first) * plane;
    pack(plane, source, first + 1 < planes ? source + plane : nullptr, to + part * plane);
  });
}

void pack_neighbors(int threads, std::int64_t planes, std::int64_t plane, const BFloat16* from, LaneUnit* to) {
  const std::int64_t inner = plane - kLanes;
  for_each_part(threads, planes, [&](std::int64_t i) {
    const BFloat16* source = from + i * plane;
    LaneUnit* target = to + i * plane;
    pack(inner, source, source + kLanes, target);
    pack(kLanes, source + inner, nullptr, target + inner);
  });
}

}  // namespace arbalest::engine::cpu
