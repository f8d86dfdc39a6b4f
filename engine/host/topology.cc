#include "engine/host/topology.h"

#include <sched.h>
#include <sys/resource.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <cstring>
#include <fstream>
#include <limits>
#include <optional>
#include <sstream>
#include <string_view>

#include "engine/base/error.h"
#include "engine/host/cgroup.h"

namespace arbalest::engine::host {
namespace {

// The first value of "key : value" in /proc/cpuinfo; empty if there is none.
std::string cpuinfo_field(std::string_view key) {
  std::ifstream file("/proc/cpuinfo");
  for (std::string line; std::getline(file, line);) {
    const std::size_t colon = line.find(':');
    if (!line.starts_with(key) || colon == std::string::npos) continue;
    const std::size_t value = line.find_first_not_of(" \t", colon + 1);
    if (value != std::string::npos) return line.substr(value);
  }
  return "";
}

std::optional<std::uint64_t> memory_available() {
  std::ifstream file("/proc/meminfo");
  for (std::string line; std::getline(file, line);) {
    std::string key;
    std::uint64_t kibibytes = 0;
    if (std::istringstream(line) >> key >> kibibytes && key == "MemAvailable:") return kibibytes * 1024;
  }
  return std::nullopt;
}

std::optional<std::uint64_t> address_space_unused() {
  rlimit limit{};
  if (getrlimit(RLIMIT_AS, &limit) != 0 || limit.rlim_cur == RLIM_INFINITY) return std::nullopt;
  std::uint64_t pages = 0;
  std::ifstream("/proc/self/statm") >> pages;
  const std::uint64_t used = pages * static_cast<std::uint64_t>(sysconf(_SC_PAGESIZE));
  return limit.rlim_cur - std::min<std::uint64_t>(limit.rlim_cur, used);
}

}  // namespace

std::vector<int> allowed_cores() {
  // The kernel rejects a mask that is smaller than its own, so the mask grows until it fits.
  for (std::size_t words = 16;; words *= 2) {
    std::vector<unsigned long> mask(words, 0);
    const std::size_t bytes = words * sizeof(unsigned long);
    if (sched_getaffinity(0, bytes, reinterpret_cast<cpu_set_t*>(mask.data())) == 0) {
      constexpr std::size_t kBits = sizeof(unsigned long) * 8;
      std::vector<int> cores;
      for (std::size_t core = 0; core < words * kBits; ++core) {
        if ((mask[core / kBits] >> (core % kBits) & 1UL) != 0) cores.push_back(static_cast<int>(core));
      }
      return cores;
    }
    if (errno != EINVAL || words > (1U << 16)) {
      fail(ErrorKind::kInternal, "sched_getaffinity failed: {}", std::strerror(errno));
    }
  }
}

int usable_cores() {
  const auto allowed = static_cast<int>(allowed_cores().size());
  // Rounded down: with a quota of 1.5 cores, a second thread would be throttled half of the time.
  const double quota = read_cgroup_limits().cores.value_or(std::numeric_limits<int>::max());
  return std::max(1, quota < allowed ? static_cast<int>(quota) : allowed);
}

std::size_t available_memory_bytes() {
  std::uint64_t available = std::numeric_limits<std::size_t>::max();
  for (const std::optional<std::uint64_t>& limit :
       {memory_available(), read_cgroup_limits().memory_unused, address_space_unused()}) {
    if (limit) available = std::min(available, *limit);
  }
  return available;
}

std::string processor_name() {
  const std::string name = cpuinfo_field("model name");
  return name.empty() ? "unknown processor" : name;
}

std::vector<std::string> instruction_sets() {
  constexpr std::array kOfInterest = {"avx",      "avx2",     "fma",         "f16c",        "avx_vnni",
                                      "avx512f",  "avx512bw", "avx512_vnni", "avx512_bf16", "avx512_fp16",
                                      "amx_tile", "amx_bf16", "amx_int8"};
  std::istringstream flags(cpuinfo_field("flags"));
  std::vector<std::string> present;
  for (std::string flag; flags >> flag;) {
    if (std::find(kOfInterest.begin(), kOfInterest.end(), flag) != kOfInterest.end()) present.push_back(flag);
  }
  return present;
}

}  // namespace arbalest::engine::host
