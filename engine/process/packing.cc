#include "engine/process/packing.h"

#include <cstdint>
#include <cstring>

#include "engine/base/error.h"

namespace arbalest::engine::process {

std::string pack(std::span<const std::string> parts) {
  std::string bytes;  // of each part its length, then its bytes
  for (const std::string& part : parts) {
    const std::uint64_t length = part.size();
    bytes.append(reinterpret_cast<const char*>(&length), sizeof length);
    bytes += part;
  }
  return bytes;
}

std::vector<std::string> unpack(std::string_view bytes) {
  std::vector<std::string> parts;
  while (!bytes.empty()) {
    std::uint64_t length = 0;
    ARBALEST_CHECK(bytes.size() >= sizeof length);
    std::memcpy(&length, bytes.data(), sizeof length);
    bytes.remove_prefix(sizeof length);
    ARBALEST_CHECK(bytes.size() >= length);
    parts.emplace_back(bytes.substr(0, length));
    bytes.remove_prefix(length);
  }
  return parts;
}

}  // namespace arbalest::engine::process
