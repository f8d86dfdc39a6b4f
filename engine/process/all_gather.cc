#include "engine/process/all_gather.h"

#include <cstdint>
#include <cstring>

#include "engine/process/world.h"

namespace arbalest::engine::process {

std::vector<std::string> all_gather(World& world, std::string_view bytes) {
  std::vector<std::string> parts = world.gather(bytes);
  if (world.size() == 1) return parts;
  const auto ranks = static_cast<std::size_t>(world.size());
  // All parts in one broadcast: their lengths, then the bytes.
  std::string message;
  for (const std::string& part : parts) {
    const std::uint64_t length = part.size();
    message.append(reinterpret_cast<const char*>(&length), sizeof length);
  }
  for (const std::string& part : parts) message += part;
  world.broadcast(message);
  if (world.rank() == 0) return parts;
  parts.clear();
  std::size_t begin = ranks * sizeof(std::uint64_t);
  for (std::size_t rank = 0; rank < ranks; ++rank) {
    std::uint64_t length = 0;
    std::memcpy(&length, message.data() + rank * sizeof length, sizeof length);
    parts.push_back(message.substr(begin, length));
    begin += length;
  }
  return parts;
}

std::vector<double> all_gather(World& world, double number) {
  std::vector<double> numbers;
  for (const std::string& bytes : all_gather(world, std::string_view(reinterpret_cast<const char*>(&number), sizeof number))) {
    std::memcpy(&numbers.emplace_back(), bytes.data(), sizeof number);
  }
  return numbers;
}

}  // namespace arbalest::engine::process
