// Memory of a CPU device's buffers.
#include <sys/resource.h>
#include <unistd.h>

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <fstream>
#include <vector>

#include "engine/backends/devices.h"
#include "engine/base/error.h"
#include "tests/support/catch.h"

namespace arbalest::engine {
namespace {

constexpr std::size_t kMebibyte = std::size_t{1} << 20U;
constexpr std::size_t kLargePage = 2 * kMebibyte;
constexpr std::size_t kPage = 4096;

std::size_t address_space() {
  std::size_t pages = 0;
  std::ifstream("/proc/self/statm") >> pages;
  return pages * static_cast<std::size_t>(sysconf(_SC_PAGESIZE));
}

}  // namespace

TEST_CASE("large buffers are aligned to large pages, zeroed, and take no extra address space", "[memory]") {
  constexpr std::size_t kBytes = 3 * kMebibyte + 1;
  constexpr std::size_t kBuffers = 16;
  const auto device = open_device(parse_device("cpu"));
  std::vector<Buffer> buffers(kBuffers);
  const std::size_t before = address_space();
  for (Buffer& buffer : buffers) buffer = device->allocate(kBytes);
  const std::size_t taken = address_space() - before;
  CHECK(taken >= kBuffers * kBytes);
  CHECK(taken <= kBuffers * (kBytes + kPage));
  for (const Buffer& buffer : buffers) {
    CHECK(reinterpret_cast<std::uintptr_t>(buffer.data()) % kLargePage == 0);
    CHECK(std::all_of(buffer.as<char>(), buffer.as<char>() + kBytes, [](char byte) { return byte == 0; }));
    std::fill_n(buffer.as<char>(), kBytes, '1');
  }
  buffers.clear();
  CHECK(address_space() == before);
}

TEST_CASE("a large buffer can be allocated in just enough address space", "[memory]") {
  const auto device = open_device(parse_device("cpu"));
  rlimit old_limit{};
  REQUIRE(getrlimit(RLIMIT_AS, &old_limit) == 0);
  rlimit limit = old_limit;
  limit.rlim_cur = address_space() + 9 * kMebibyte;
  REQUIRE(setrlimit(RLIMIT_AS, &limit) == 0);
  Buffer buffer;
  bool has_room_for_more = true;
  try {
    buffer = device->allocate(8 * kMebibyte);
    has_room_for_more = device->allocate(2 * kMebibyte).data() != nullptr;
  } catch (const Error& error) {
    has_room_for_more = error.kind() != ErrorKind::kOutOfMemory;
  }
  REQUIRE(setrlimit(RLIMIT_AS, &old_limit) == 0);
  CHECK(buffer.data() != nullptr);
  CHECK_FALSE(has_room_for_more);
  CHECK_THROWS_AS(device->allocate(SIZE_MAX), Error);
  CHECK_THROWS_AS(device->allocate(SIZE_MAX - kLargePage), Error);
}

}  // namespace arbalest::engine
