#include "dataflow/input/formats/records/crc32c.h"

#include <nmmintrin.h>

#include <bit>
#include <cstring>

namespace arbalest::dataflow {

// Uses the processor's own instruction, which every machine of our baseline has.
std::uint32_t crc32c(std::span<const std::uint8_t> bytes) noexcept {
  std::uint64_t crc = 0xFFFFFFFFU;
  for (; bytes.size() >= sizeof(std::uint64_t); bytes = bytes.subspan(sizeof(std::uint64_t))) {
    std::uint64_t word = 0;
    std::memcpy(&word, bytes.data(), sizeof(word));
    crc = _mm_crc32_u64(crc, word);
  }
  auto rest = static_cast<std::uint32_t>(crc);
  for (const std::uint8_t byte : bytes) rest = _mm_crc32_u8(rest, byte);
  return ~rest;
}

std::uint32_t masked_crc32c(std::span<const std::uint8_t> bytes) noexcept {
  return std::rotr(crc32c(bytes), 15) + 0xA282EAD8U;
}

}  // namespace arbalest::dataflow
