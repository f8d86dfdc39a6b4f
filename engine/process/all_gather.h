// Operations that are made of others.
#pragma once

#include <string>
#include <string_view>
#include <vector>

namespace arbalest::engine::process {

class World;

// On every rank: the bytes of each rank. A call of World's operations on all ranks; throws like them.
std::vector<std::string> all_gather(World& world, std::string_view bytes);

// Does the same with a number.
std::vector<double> all_gather(World& world, double number);

}  // namespace arbalest::engine::process
