#include "engine/host/topology.h"

#include <sched.h>
#include <sys/resource.h>
#include <unistd.h>

#include <algorithm>
#include <cstdint>
#include <filesystem>
#include <fstream>
#include <string>
#include <vector>

#include "engine/host/cgroup.h"
#include "tests/support/catch.h"
#include "tests/support/temporary_directory.h"

namespace {

using arbalest::engine::host::CgroupLimits;
using arbalest::engine::host::read_cgroup_limits;

// A fake /proc and /sys.
class FakeSystem {
 public:
  void write(const std::string& path, const std::string& text) {
    const std::filesystem::path file = directory_.path() / path;
    std::filesystem::create_directories(file.parent_path());
    arbalest::tests::write_text(file, text);
  }
  CgroupLimits limits() const { return read_cgroup_limits(directory_.path().string()); }

 private:
  arbalest::tests::TemporaryDirectory directory_;
};

constexpr const char* kVersion2Mount = "30 23 0:26 / /sys/fs/cgroup rw,nosuid shared:4 - cgroup2 cgroup2 rw\n";

}  // namespace

TEST_CASE("the process's share of this machine is plausible", "[host]") {
  using namespace arbalest::engine::host;
  const std::vector<int> cores = allowed_cores();
  REQUIRE_FALSE(cores.empty());
  CHECK(std::is_sorted(cores.begin(), cores.end()));
  CHECK(cores.front() >= 0);
  CHECK(usable_cores() >= 1);
  CHECK(usable_cores() <= static_cast<int>(cores.size()));
  CHECK(available_memory_bytes() > std::size_t{1} << 20U);
  CHECK(available_memory_bytes() <=
        static_cast<std::size_t>(sysconf(_SC_PHYS_PAGES)) * static_cast<std::size_t>(sysconf(_SC_PAGESIZE)));
  CHECK_FALSE(processor_name().empty());
  const std::vector<std::string> sets = instruction_sets();
  CHECK((std::find(sets.begin(), sets.end(), "avx2") != sets.end()) == (__builtin_cpu_supports("avx2") != 0));
}

TEST_CASE("the affinity mask limits the cores", "[host]") {
  using namespace arbalest::engine::host;
  const std::vector<int> before = allowed_cores();
  cpu_set_t old_mask;
  REQUIRE(sched_getaffinity(0, sizeof(old_mask), &old_mask) == 0);
  cpu_set_t one;
  CPU_ZERO(&one);
  CPU_SET(static_cast<std::size_t>(before.back()), &one);
  REQUIRE(sched_setaffinity(0, sizeof(one), &one) == 0);
  CHECK(allowed_cores() == std::vector<int>{before.back()});
  CHECK(usable_cores() == 1);
  REQUIRE(sched_setaffinity(0, sizeof(old_mask), &old_mask) == 0);
}

TEST_CASE("an address space limit bounds the available memory", "[host]") {
  rlimit old_limit{};
  REQUIRE(getrlimit(RLIMIT_AS, &old_limit) == 0);
  std::uint64_t pages = 0;
  std::ifstream("/proc/self/statm") >> pages;
  constexpr std::uint64_t kRoom = std::uint64_t{64} << 20U;
  rlimit limit = old_limit;
  limit.rlim_cur = pages * static_cast<std::uint64_t>(sysconf(_SC_PAGESIZE)) + kRoom;
  REQUIRE(setrlimit(RLIMIT_AS, &limit) == 0);
  const std::size_t little = arbalest::engine::host::available_memory_bytes();
  REQUIRE(setrlimit(RLIMIT_AS, &old_limit) == 0);
  CHECK(little > 0);
  CHECK(little <= kRoom);
}

TEST_CASE("cgroups version 2: the tightest limit from the group up to the mount applies", "[host]") {
  FakeSystem system;
  system.write("proc/self/mountinfo", kVersion2Mount);
  system.write("proc/self/cgroup", "0::/job/step\n");
  CHECK_FALSE(system.limits().cores.has_value());
  CHECK_FALSE(system.limits().memory_unused.has_value());

  system.write("sys/fs/cgroup/job/step/cpu.max", "max 100000\n");
  system.write("sys/fs/cgroup/job/cpu.max", "250000 100000\n");
  system.write("sys/fs/cgroup/job/step/memory.max", "max\n");
  system.write("sys/fs/cgroup/job/step/memory.current", "500\n");
  system.write("sys/fs/cgroup/job/memory.max", "1000\n");
  system.write("sys/fs/cgroup/job/memory.current", "700\n");
  system.write("sys/fs/cgroup/job/memory.stat", "anon 500\ninactive_file 150\nactive_file 50\n");
  CHECK(system.limits().cores == 2.5);
  CHECK(system.limits().memory_unused == 450U);  // 1000 - (700 - 150)

  system.write("sys/fs/cgroup/job/step/cpu.max", "50000 100000\n");
  CHECK(system.limits().cores == 0.5);
}

TEST_CASE("cgroups version 1: cpu and memory may be in different groups", "[host]") {
  FakeSystem system;
  system.write("proc/self/mountinfo",
               "31 23 0:27 / /sys/fs/cgroup/cpu,cpuacct rw - cgroup cgroup rw,cpu,cpuacct\n"
               "32 23 0:28 / /sys/fs/cgroup/memory rw - cgroup cgroup rw,memory\n"
               "33 23 0:29 / /sys/fs/cgroup/cpuset rw - cgroup cgroup rw,cpuset\n");
  system.write("proc/self/cgroup", "4:memory:/m\n3:cpuset:/\n2:cpu,cpuacct:/c\n");
  system.write("sys/fs/cgroup/cpu,cpuacct/c/cpu.cfs_quota_us", "300000\n");
  system.write("sys/fs/cgroup/cpu,cpuacct/c/cpu.cfs_period_us", "100000\n");
  system.write("sys/fs/cgroup/memory/m/memory.limit_in_bytes", "1000\n");
  system.write("sys/fs/cgroup/memory/m/memory.usage_in_bytes", "400\n");
  CHECK(system.limits().cores == 3.0);
  CHECK(system.limits().memory_unused == 600U);

  system.write("sys/fs/cgroup/cpu,cpuacct/c/cpu.cfs_quota_us", "-1\n");
  CHECK_FALSE(system.limits().cores.has_value());
  system.write("sys/fs/cgroup/memory/m/memory.usage_in_bytes", "1400\n");
  CHECK(system.limits().memory_unused == 0U);
}

TEST_CASE("cgroups: a memory limit above the machine's memory is no limit", "[host]") {
  FakeSystem system;
  system.write("proc/self/mountinfo", "32 23 0:28 / /sys/fs/cgroup/memory rw - cgroup cgroup rw,memory\n");
  system.write("proc/self/cgroup", "4:memory:/\n");
  system.write("sys/fs/cgroup/memory/memory.usage_in_bytes", "400\n");
  system.write("sys/fs/cgroup/memory/memory.limit_in_bytes", "9223372036854771712\n");  // "no limit" of version 1
  CHECK_FALSE(system.limits().memory_unused.has_value());
  system.write("sys/fs/cgroup/memory/memory.limit_in_bytes", "1000\n");
  CHECK(system.limits().memory_unused == 600U);
}

TEST_CASE("cgroups: a mount may show only a part of the hierarchy", "[host]") {
  FakeSystem system;
  system.write("proc/self/mountinfo", "30 23 0:26 /docker/abc /sys/fs/cgroup rw - cgroup2 cgroup2 rw\n");
  system.write("proc/self/cgroup", "0::/docker/abc/inner\n");
  system.write("sys/fs/cgroup/inner/cpu.max", "100000 100000\n");
  CHECK(system.limits().cores == 1.0);
  system.write("proc/self/cgroup", "0::/elsewhere\n");
  system.write("sys/fs/cgroup/cpu.max", "200000 100000\n");
  CHECK(system.limits().cores == 2.0);
}

TEST_CASE("cgroups: missing or invalid files set no limit", "[host]") {
  FakeSystem system;
  CHECK_FALSE(system.limits().cores.has_value());
  system.write("proc/self/mountinfo", std::string("nonsense\n - \n\n") + kVersion2Mount);
  system.write("proc/self/cgroup", "nonsense\n0:\n::\n0::/\n");
  system.write("sys/fs/cgroup/cpu.max", "");
  system.write("sys/fs/cgroup/memory.max", "12");
  CHECK_FALSE(system.limits().cores.has_value());
  CHECK_FALSE(system.limits().memory_unused.has_value());
  system.write("sys/fs/cgroup/cpu.max", "1000 0\n");
  CHECK_FALSE(system.limits().cores.has_value());
}
