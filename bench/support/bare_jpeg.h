// Calls libjpeg-turbo as directly as possible.
#pragma once

#include <cstdint>
#include <span>
#include <vector>

namespace arbalest::bench {

// Decodes a valid color or gray JPEG to RGB at `eighths` eighths of its size, into `pixels`, which grows as needed.
// Ends the program if the file is damaged.
void decode_bare(std::span<const std::uint8_t> file, unsigned eighths, std::vector<std::uint8_t>& pixels);

}  // namespace arbalest::bench
