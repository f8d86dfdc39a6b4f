#include "engine/host/cgroup.h"

#include <unistd.h>

#include <algorithm>
#include <charconv>
#include <fstream>
#include <sstream>
#include <string_view>
#include <vector>

namespace arbalest::engine::host {
namespace {

// A mounted hierarchy of control groups: the mount point, and the group that the mount shows as its top (a container
// often sees only a part).
struct Mount {
  std::string point;
  std::string top;
  std::string type;     // "cgroup" or "cgroup2"
  std::string options;  // "rw,cpu,cpuacct"
};

std::optional<std::string> read_text(const std::string& path) {
  std::ifstream file(path);
  if (!file) return std::nullopt;
  std::ostringstream text;
  text << file.rdbuf();
  return text.str();
}

std::optional<std::uint64_t> parse_number(std::string_view text) {
  std::uint64_t value = 0;
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), value);
  if (error != std::errc() || end == text.data()) return std::nullopt;  // "max", "-1"
  return value;
}

std::optional<std::uint64_t> read_number(const std::string& path) {
  const std::optional<std::string> text = read_text(path);
  return text ? parse_number(*text) : std::nullopt;
}

// Reads the value of a line "key value" in a file.
std::uint64_t read_field(const std::string& path, std::string_view key) {
  std::ifstream file(path);
  for (std::string line; std::getline(file, line);) {
    if (line.size() > key.size() && line.starts_with(key) && line[key.size()] == ' ') {
      return parse_number(std::string_view(line).substr(key.size() + 1)).value_or(0);
    }
  }
  return 0;
}

bool lists(std::string_view comma_separated, std::string_view name) {
  while (!comma_separated.empty()) {
    const std::size_t comma = comma_separated.find(',');
    if (comma_separated.substr(0, comma) == name) return true;
    if (comma == std::string_view::npos) break;
    comma_separated.remove_prefix(comma + 1);
  }
  return false;
}

// Parses lines of mountinfo: "36 35 0:32 /top /sys/fs/cgroup/cpu rw - cgroup cgroup rw,cpu" (man 5 proc).
std::vector<Mount> read_mounts(const std::string& root) {
  std::vector<Mount> mounts;
  std::ifstream file(root + "/proc/self/mountinfo");
  for (std::string line; std::getline(file, line);) {
    const std::size_t dash = line.find(" - ");
    if (dash == std::string::npos) continue;
    Mount mount;
    std::string skipped;
    std::istringstream(line.substr(0, dash)) >> skipped >> skipped >> skipped >> mount.top >> mount.point;
    std::istringstream(line.substr(dash + 3)) >> mount.type >> skipped >> mount.options;
    if (mount.type == "cgroup" || mount.type == "cgroup2") mounts.push_back(std::move(mount));
  }
  return mounts;
}

// The directories of the process's group and of all groups above it that the mount shows, innermost first.
std::vector<std::string> group_directories(const std::string& root, const Mount& mount, std::string group) {
  if (mount.top != "/") {
    const bool inside = group == mount.top || group.starts_with(mount.top + "/");
    group = inside ? group.substr(mount.top.size()) : "";
  }
  std::vector<std::string> directories;
  while (group.size() > 1) {
    directories.push_back(root + mount.point + group);
    group.resize(group.rfind('/'));
  }
  directories.push_back(root + mount.point);
  return directories;
}

template <typename T>
void lower(std::optional<T>& limit, T value) {
  limit = limit ? std::min(*limit, value) : value;
}

void lower_cores(CgroupLimits& limits, std::optional<std::uint64_t> quota, std::optional<std::uint64_t> period) {
  if (quota && period && *period > 0) lower(limits.cores, static_cast<double>(*quota) / static_cast<double>(*period));
}

// Whether a limit exceeds the machine's memory: version 1 writes "no limit" as the largest multiple of a page.
bool is_beyond_memory(std::uint64_t bytes) {
  return bytes / static_cast<std::uint64_t>(sysconf(_SC_PAGESIZE)) >
         static_cast<std::uint64_t>(sysconf(_SC_PHYS_PAGES));
}

void lower_memory(CgroupLimits& limits, std::optional<std::uint64_t> limit, std::optional<std::uint64_t> use,
                  std::uint64_t reclaimable) {
  if (!limit || !use || is_beyond_memory(*limit)) return;
  const std::uint64_t held = *use - std::min(*use, reclaimable);
  lower(limits.memory_unused, *limit - std::min(*limit, held));
}

void apply_version_1(CgroupLimits& limits, const std::string& directory, bool cpu, bool memory) {
  if (cpu) {
    lower_cores(limits, read_number(directory + "/cpu.cfs_quota_us"), read_number(directory + "/cpu.cfs_period_us"));
  }
  if (memory) {
    lower_memory(limits, read_number(directory + "/memory.limit_in_bytes"),
                 read_number(directory + "/memory.usage_in_bytes"),
                 read_field(directory + "/memory.stat", "total_inactive_file"));
  }
}

void apply_version_2(CgroupLimits& limits, const std::string& directory) {
  if (const std::optional<std::string> text = read_text(directory + "/cpu.max")) {
    const std::size_t space = text->find(' ');
    if (space != std::string::npos) {
      lower_cores(limits, parse_number(*text), parse_number(std::string_view(*text).substr(space + 1)));
    }
  }
  lower_memory(limits, read_number(directory + "/memory.max"), read_number(directory + "/memory.current"),
               read_field(directory + "/memory.stat", "inactive_file"));
}

// A group that encloses the process, in one of the mounted hierarchies.
struct Group {
  std::string directory;
  bool is_version_2 = false;
  bool cpu = false;     // whether it limits processor time
  bool memory = false;  // whether it limits memory
};

std::vector<Group> enclosing_groups(const std::string& root) {
  std::vector<Group> groups;
  const std::vector<Mount> mounts = read_mounts(root);
  std::ifstream file(root + "/proc/self/cgroup");  // "4:memory:/group" (version 1), "0::/group" (version 2)
  for (std::string line; std::getline(file, line);) {
    const std::size_t first = line.find(':');
    const std::size_t second = first == std::string::npos ? first : line.find(':', first + 1);
    if (second == std::string::npos) continue;
    const std::string controllers = line.substr(first + 1, second - first - 1);
    const std::string group = line.substr(second + 1);
    const bool cpu = lists(controllers, "cpu");
    const bool memory = lists(controllers, "memory");
    for (const Mount& mount : mounts) {
      const bool is_version_2 = controllers.empty() && mount.type == "cgroup2";
      const bool is_version_1 = mount.type == "cgroup" &&
                                ((cpu && lists(mount.options, "cpu")) || (memory && lists(mount.options, "memory")));
      if (!is_version_1 && !is_version_2) continue;
      for (std::string& directory : group_directories(root, mount, group)) {
        groups.push_back({std::move(directory), is_version_2, is_version_2 || cpu, is_version_2 || memory});
      }
    }
  }
  return groups;
}

}  // namespace

CgroupLimits read_cgroup_limits(const std::string& root) {
  CgroupLimits limits;
  for (const Group& group : enclosing_groups(root)) {
    if (group.is_version_2) {
      apply_version_2(limits, group.directory);
    } else {
      apply_version_1(limits, group.directory, group.cpu, group.memory);
    }
  }
  return limits;
}

std::vector<std::string> cgroup_quota_files(const std::string& root) {
  std::vector<std::string> files;
  for (const Group& group : enclosing_groups(root)) {
    std::string path = group.directory + "/cpu.stat";
    if (group.cpu && read_text(path) && std::ranges::find(files, path) == files.end()) files.push_back(std::move(path));
  }
  return files;
}

// Microseconds in version 2, nanoseconds in version 1.
double read_throttled_seconds(const std::string& path) {
  return 1e-6 * static_cast<double>(read_field(path, "throttled_usec")) +
         1e-9 * static_cast<double>(read_field(path, "throttled_time"));
}

}  // namespace arbalest::engine::host
