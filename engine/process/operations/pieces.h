// Cuts bytes into messages that are short enough for a transport.
#pragma once

#include <algorithm>
#include <cstddef>

#include "engine/process/operations/transport.h"

namespace arbalest::engine::process {

// Calls post(begin, size) for each piece of at most `most` bytes. Returns the number of pieces.
template <typename Post>
std::size_t for_pieces(std::size_t bytes, const Post& post, std::size_t most = kMaxMessageBytes) {
  std::size_t pieces = 0;
  for (std::size_t begin = 0; begin < bytes; begin += most, ++pieces) {
    post(begin, std::min(most, bytes - begin));
  }
  return pieces;
}

}  // namespace arbalest::engine::process
