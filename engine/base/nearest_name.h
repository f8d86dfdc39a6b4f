// "Did you mean ...?" for names in job files and on the command line.
#pragma once

#include <span>
#include <string>
#include <string_view>

namespace arbalest::engine {

// The candidate closest to `name` by edit distance, or "" if none is close. At most one edit is close for names of up
// to 3 letters; for longer names 2 edits, or a third of the length.
std::string nearest_name(std::string_view name, std::span<const std::string> candidates);

// "; did you mean 'x'?", or "" if none is close.
std::string did_you_mean(std::string_view name, std::span<const std::string> candidates);

}  // namespace arbalest::engine
