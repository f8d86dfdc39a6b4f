// Numbers of the random sequences (dataflow::RandomSequence) that say in which order a pass goes through its data.
#pragma once

#include <cstdint>

namespace arbalest::scheduler {

inline constexpr std::uint64_t kBlockOrder = 0x626C6F636B73;     // "blocks": of delayed block proximal gradient
inline constexpr std::uint64_t kRowOrder = 0x686F6777696C64;     // "hogwild": of Hogwild on rows
inline constexpr std::uint64_t kRatingOrder = 0x666163746F7273;  // "factors": of Hogwild on ratings, plus the block

}  // namespace arbalest::scheduler
