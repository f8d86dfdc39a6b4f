// Reads the value of --seeds.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

namespace arbalest::jobs {

// Reads ranges and single seeds: "1..5", "1,2,7", "1..3,9". Returns the seeds in the given order. Throws
// ErrorKind::kUsage for other texts, for a seed that is given twice, and for more than 1000 seeds.
std::vector<std::uint64_t> parse_seeds(const std::string& text);

}  // namespace arbalest::jobs
