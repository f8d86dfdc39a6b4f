#include "engine/host/memory_budget.h"

#include <unistd.h>

#include <algorithm>
#include <fstream>
#include <limits>

#include "engine/base/error.h"
#include "engine/host/topology.h"

namespace arbalest::engine::host {

namespace {

constexpr std::size_t kUnlimited = std::numeric_limits<std::size_t>::max();

std::size_t resident_bytes() {
  std::size_t size = 0;
  std::size_t resident = 0;
  std::ifstream("/proc/self/statm") >> size >> resident;
  return resident * static_cast<std::size_t>(sysconf(_SC_PAGESIZE));
}

}  // namespace

MemoryBudget::MemoryBudget(int processes)
    : part_(processes == 1 ? kUnlimited : available_memory_bytes() / static_cast<std::size_t>(processes)),
      resident_bytes_(processes == 1 ? 0 : resident_bytes()) {}

std::size_t MemoryBudget::left_bytes() const {
  const std::size_t free = available_memory_bytes();
  if (part_ == kUnlimited) return free;
  const std::size_t resident = resident_bytes();
  const std::size_t taken = resident - std::min(resident, resident_bytes_);
  return std::min(free, part_ - std::min(part_, taken));
}

void MemoryBudget::require(std::uint64_t bytes, const std::string& what, std::string_view remedy) const {
  constexpr std::uint64_t kMostReserve = std::uint64_t{32} << 20U;
  constexpr double kMebibyte = 1024.0 * 1024.0;
  const std::size_t left = left_bytes();
  if (bytes <= left && std::min(bytes / 16, kMostReserve) <= left - bytes) return;
  fail(ErrorKind::kOutOfMemory, "{}: needs {} bytes ({:.1f} MiB) of memory, but {} ({:.1f} MiB) are free{}; {}", what,
       bytes, static_cast<double>(bytes) / kMebibyte, left, static_cast<double>(left) / kMebibyte,
       bytes <= left         ? ", and a part must stay free"
       : part_ == kUnlimited ? ""
                             : " for this process",
       remedy);
}

}  // namespace arbalest::engine::host
