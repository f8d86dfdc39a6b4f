// CRC-32C (Castagnoli), the checksum of TFRecord files.
#pragma once

#include <cstdint>
#include <span>

namespace arbalest::dataflow {

std::uint32_t crc32c(std::span<const std::uint8_t> bytes) noexcept;

// As TFRecord files hold it: rotated and with a constant added, because the checksum of data that holds its own
// checksum says little (tensorflow/tsl/lib/hash/crc32c.h).
std::uint32_t masked_crc32c(std::span<const std::uint8_t> bytes) noexcept;

}  // namespace arbalest::dataflow
