// Groups of elements for kernels that process each channel separately: neighbors within one channel, or neighboring
// channels of one row.
#pragma once

#include "engine/cuda/kernels/channel_rows.h"
#include "engine/cuda/kernels/wide.h"

namespace arbalest::engine::cuda {

// kNumbers neighboring elements: of kNumbers channels in one row if kAcross, else of one channel.
template <typename T, int kNumbersOfGroup, bool kAcross>
struct ChannelGroup {
  using Element = T;
  static constexpr int kNumbers = kNumbersOfGroup;
  static constexpr int kChannels = kAcross ? kNumbers : 1;

  // Index in the group of the channel of element k.
  static constexpr __device__ int channel_of(int k) { return kAcross ? k : 0; }
};

// Calls function(group kind, geometry in units of such groups) with the widest group whose size divides the tensor.
template <typename T, typename Function>
void with_groups(const Geometry& of, const Function& function) {
  constexpr int kNumbers = kWide<T>;
  if (of.pixels == 1 && of.channels % kNumbers == 0) {
    function(ChannelGroup<T, kNumbers, true>(), Geometry{of.rows, of.channels / kNumbers, 1});
  } else if (of.pixels % kNumbers == 0) {
    function(ChannelGroup<T, kNumbers, false>(), Geometry{of.rows / kNumbers, of.channels, of.pixels / kNumbers});
  } else {
    function(ChannelGroup<T, 1, false>(), of);
  }
}

}  // namespace arbalest::engine::cuda
