// Copies between vectors of the host and memory of a device, through the engine's own streams. The host blocks until
// the copies are done.
#pragma once

#include <cstddef>
#include <vector>

#include "engine/device.h"

namespace arbalest::tests {

inline void copy(engine::Device& device, void* to, const void* from, std::size_t bytes) {
  if (bytes == 0) return;
  const auto stream =
      device.create_stream({.name = "copy", .role = engine::StreamRole::kTransfer});  // on a GPU, without the libraries
  stream->copy(to, from, bytes, "copy");
  stream->record().synchronize();
}

template <typename T>
engine::Buffer upload(engine::Device& device, const std::vector<T>& values) {
  engine::Buffer buffer = device.allocate(values.size() * sizeof(T));
  copy(device, buffer.data(), values.data(), values.size() * sizeof(T));
  return buffer;
}

template <typename T>
std::vector<T> download(engine::Device& device, const void* data, std::size_t count) {
  std::vector<T> values(count);
  copy(device, values.data(), data, count * sizeof(T));
  return values;
}

}  // namespace arbalest::tests
