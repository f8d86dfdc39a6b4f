#include "engine/process/all_gather.h"

#include <cstring>

#include "engine/process/packing.h"
#include "engine/process/world.h"

namespace arbalest::engine::process {

std::vector<std::string> all_gather(World& world, std::string_view bytes) {
  std::string all = pack(world.gather(bytes));
  world.broadcast(all);
  return unpack(all);
}

std::vector<double> all_gather(World& world, double number) {
  std::vector<double> numbers;
  const std::string_view own(reinterpret_cast<const char*>(&number), sizeof number);
  for (const std::string& bytes : all_gather(world, own)) {
    std::memcpy(&numbers.emplace_back(), bytes.data(), sizeof number);
  }
  return numbers;
}

}  // namespace arbalest::engine::process
