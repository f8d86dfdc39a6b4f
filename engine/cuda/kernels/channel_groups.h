// Groups of a tensor's elements for kernels that treat every channel for itself: neighbors of one channel, or of one
// row's channels.
#pragma once

#include "engine/cuda/kernels/channel_rows.h"
#include "engine/cuda/kernels/wide.h"

namespace arbalest::engine::cuda {

// kNumbers neighboring elements. kAcross: they belong to kNumbers channels of one row; else to one channel.
template <typename T, int kNumbersOfGroup, bool kAcross>
struct ChannelGroup {
  using Element = T;
  static constexpr int kNumbers = kNumbersOfGroup;
  static constexpr int kChannels = kAcross ? kNumbers : 1;

  // The group's channel to which element k belongs.
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
