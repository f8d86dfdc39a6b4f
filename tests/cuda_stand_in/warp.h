// Functions that the lanes of a warp call together: __syncwarp and shuffles (CUDA programming guide, "Warp Shuffle
// Functions"). All 32 lanes must take part, in the same line. Other masks are violations, because the stand-in does not
// model parts of warps.
#pragma once

#include <cuda_runtime.h>

#include <cstring>
#include <type_traits>

extern uint3 threadIdx;
extern dim3 blockDim;

inline constexpr int warpSize = 32;

namespace arbalest::tests::cuda_stand_in {

inline constexpr unsigned kWarpLanes = 32;
inline constexpr unsigned kWholeWarp = 0xFFFF'FFFF;

// What the lanes of a warp do together.
struct WarpOperation {
  const char* name = nullptr;                 // of the function, for violations
  void (*run)(void* const* lanes) = nullptr;  // gets what each of the 32 lanes gave; nullptr: the lanes only meet
};

// Lets other threads run until all lanes of the calling thread's warp have come to the operation in the same line. Then
// it runs once. If not all of them come, or `mask` names only some lanes, records a violation and returns false: the
// operation has not run.
//   own: what the calling lane gives to the operation
bool meet_warp(const WarpOperation& operation, unsigned mask, int line, void* own);

// Returns the width of a shuffle. If it is no power of two up to 32, or the distance of the lanes is 32 or more,
// records a violation and returns 32.
unsigned check_shuffle(const char* name, unsigned distance, int width, int line);

inline unsigned lane_number() {
  return (threadIdx.x + blockDim.x * (threadIdx.y + blockDim.y * threadIdx.z)) % kWarpLanes;
}

template <typename T>
concept Shuffled = std::is_arithmetic_v<T> &&(sizeof(T) == 4 || sizeof(T) == 8);

// Returns the value of the lane `from`. Lanes read only up to the end of their part of `width` lanes; a lane that would
// read beyond it gets its own value.
template <Shuffled T>
T shuffle(const char* name, unsigned mask, T value, unsigned from, unsigned width, int line) {
  struct Exchange {
    T value;
    unsigned from;
  };
  const unsigned lane = lane_number();
  Exchange own{value, from < (lane / width + 1) * width ? from : lane};
  const auto run = [](void* const* lanes) {
    T values[kWarpLanes];
    for (unsigned i = 0; i < kWarpLanes; ++i) values[i] = static_cast<Exchange*>(lanes[i])->value;
    for (unsigned i = 0; i < kWarpLanes; ++i) {
      auto& exchange = *static_cast<Exchange*>(lanes[i]);
      exchange.value = values[exchange.from];
    }
  };
  if (!meet_warp({name, run}, mask, line, &own)) std::memset(&own.value, 0xFF, sizeof(T));
  return own.value;
}

}  // namespace arbalest::tests::cuda_stand_in

inline void __syncwarp(unsigned mask = arbalest::tests::cuda_stand_in::kWholeWarp, int line = __builtin_LINE()) {
  arbalest::tests::cuda_stand_in::meet_warp({"__syncwarp"}, mask, line, nullptr);
}

template <arbalest::tests::cuda_stand_in::Shuffled T>
T __shfl_sync(unsigned mask, T value, int lane, int width = warpSize, int line = __builtin_LINE()) {
  namespace stand_in = arbalest::tests::cuda_stand_in;
  const unsigned part = stand_in::check_shuffle("__shfl_sync", 0, width, line);
  const unsigned first = stand_in::lane_number() / part * part;
  return stand_in::shuffle("__shfl_sync", mask, value, first + static_cast<unsigned>(lane) % part, part, line);
}

template <arbalest::tests::cuda_stand_in::Shuffled T>
T __shfl_down_sync(unsigned mask, T value, unsigned distance, int width = warpSize, int line = __builtin_LINE()) {
  namespace stand_in = arbalest::tests::cuda_stand_in;
  const unsigned part = stand_in::check_shuffle("__shfl_down_sync", distance, width, line);
  return stand_in::shuffle("__shfl_down_sync", mask, value, stand_in::lane_number() + distance, part, line);
}

template <arbalest::tests::cuda_stand_in::Shuffled T>
T __shfl_xor_sync(unsigned mask, T value, int bits, int width = warpSize, int line = __builtin_LINE()) {
  namespace stand_in = arbalest::tests::cuda_stand_in;
  const auto distance = static_cast<unsigned>(bits);
  const unsigned part = stand_in::check_shuffle("__shfl_xor_sync", distance, width, line);
  return stand_in::shuffle("__shfl_xor_sync", mask, value, stand_in::lane_number() ^ distance, part, line);
}
