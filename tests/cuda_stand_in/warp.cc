#include "tests/cuda_stand_in/warp.h"

#include <bit>

#include <fmt/format.h>

#include "tests/cuda_stand_in/state.h"

namespace arbalest::tests::cuda_stand_in {

unsigned check_shuffle(const char* name, unsigned distance, int width, int line) {
  const auto part = static_cast<unsigned>(width);
  if (std::has_single_bit(part) && part <= kWarpLanes && distance < kWarpLanes) return part;
  violation(
      fmt::format("a kernel: the {} in line {} has the distance {} and the width {}", name, line, distance, width));
  return kWarpLanes;
}

}  // namespace arbalest::tests::cuda_stand_in
