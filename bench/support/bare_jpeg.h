// Calls libjpeg-turbo as directly as possible.
#pragma once

#include <cstdint>
#include <span>
#include <vector>

namespace arbalest::bench {

// Decodes a valid color or gray JPEG to RGB in `pixels`, at `eighths` / 8 of its size. `pixels` grows as needed. Ends
// the program if the file is damaged.
void decode_bare(std::span<const std::uint8_t> file, unsigned eighths, std::vector<std::uint8_t>& pixels);

}  // namespace arbalest::bench
