// CRC-32C (Castagnoli), the checksum of TFRecord files.
#pragma once

#include <cstdint>
#include <span>

namespace arbalest::dataflow {

std::uint32_t crc32c(std::span<const std::uint8_t> bytes) noexcept;

// The checksum in the form that TFRecord files store: rotated, with a constant added. The plain checksum of data that
// contains its own checksum is weak (tensorflow/tsl/lib/hash/crc32c.h).
std::uint32_t masked_crc32c(std::span<const std::uint8_t> bytes) noexcept;

}  // namespace arbalest::dataflow
