// Several strings of bytes in one message between processes of the same program.
#pragma once

#include <span>
#include <string>
#include <string_view>
#include <vector>

namespace arbalest::engine::process {

std::string pack(std::span<const std::string> parts);
// Throws kInternal if pack() has not made the bytes.
std::vector<std::string> unpack(std::string_view bytes);

}  // namespace arbalest::engine::process
