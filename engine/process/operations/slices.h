// Divides a vector among ranks. Rank r owns slice r, which is sent in chunks.
#pragma once

#include <algorithm>
#include <cstddef>

namespace arbalest::engine::process {

class Slices {
 public:
  Slices(std::size_t elements, int ranks, std::size_t chunk)
      : elements_(elements), ranks_(static_cast<std::size_t>(ranks)), chunk_(chunk) {}

  // Slices begin at multiples of a cache line, so two ranks never write to the same one. Trailing slices of a short
  // vector are empty.
  std::size_t begin(int rank) const noexcept {
    const std::size_t lines = (elements_ + kLine - 1) / kLine;
    return std::min(elements_, (lines * static_cast<std::size_t>(rank) + ranks_ - 1) / ranks_ * kLine);
  }
  std::size_t size(int rank) const noexcept { return begin(rank + 1) - begin(rank); }

  std::size_t chunks(int rank) const noexcept { return (size(rank) + chunk_ - 1) / chunk_; }
  std::size_t chunk_begin(int rank, std::size_t chunk) const noexcept { return begin(rank) + chunk * chunk_; }
  std::size_t chunk_size(int rank, std::size_t chunk) const noexcept {
    return std::min(chunk_, size(rank) - chunk * chunk_);
  }

 private:
  static constexpr std::size_t kLine = 16;  // floats

  std::size_t elements_;
  std::size_t ranks_;
  std::size_t chunk_;
};

}  // namespace arbalest::engine::process
