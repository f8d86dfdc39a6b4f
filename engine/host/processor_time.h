// The processor time that a process got, and what it lost to other programs.
//
// Which measure is honest? The time for which threads are ready but not running (run-queue wait) is not enough: threads
// of the process wait for each other when there are more of them than cores, and that is no disturbance. The time that
// others used is not enough, either: they may use cores that the process has no work for. Each of these is an upper
// bound of the time for which the process wanted a core that another program had, and the least of them counts as lost:
//   waited  by the process's threads: Linux's /proc/PID/task/*/schedstat, and the time for which a quota of a control
//           group held them (cpu.stat)
//   unused  what the process did not get: cores * seconds - used. While it has all cores, its threads can only have
//           waited for each other.
//   others  what other programs used of the cores: cores * seconds - used - idle, from /proc/stat. On a quiet machine
//           this is about 0, however long the process's threads wait for each other at a barrier.
// Time that a hypervisor took from the cores (steal) is lost in the proportion in which the process used them.
//
// The system counts idle time in hundredths of a second for each core, so that much is forgiven in an interval, and
// others' time is also averaged over the last second, whichever is more. Without schedstat the bound `waited` is
// missing, and a neighbor that hinders nobody may count; without /proc/stat the bound `others` is missing; without both
// nothing is known. What a neighbor takes of caches, memory bandwidth, a core's other hardware thread or its clock
// frequency shows in no counter, and is not seen.
#pragma once

#include <sys/types.h>

#include <chrono>
#include <deque>
#include <map>
#include <optional>
#include <string>
#include <vector>

#include "engine/host/topology.h"

namespace arbalest::engine::host {

// Processor seconds of a process in an interval.
struct ProcessorTime {
  double seconds = 0.0;  // duration of the interval
  double used = 0.0;     // by all its threads
  double lost = 0.0;     // to other programs, as described above; 0 if unknown
  bool is_known = false;

  // The part of what the process wanted that it did not get.
  double lost_share() const { return used + lost > 0.0 ? lost / (used + lost) : 0.0; }
};

// What the counters say about an interval, in processor seconds.
struct ProcessorInterval {
  double seconds = 0.0;
  double capacity = 0.0;  // cores * seconds
  double used = 0.0;
  std::optional<double> waited{};
  std::optional<double> others{};  // without stolen time
  double stolen = 0.0;             // of all cores
};

// The formula above.
ProcessorTime processor_time(const ProcessorInterval& interval);

// Times of cores since the system started, in seconds, summed over the cores; none if the file lacks one of them.
struct CoreTimes {
  double idle = 0.0;  // includes waiting for disks
  double stolen = 0.0;
  double all = 0.0;
};
std::optional<CoreTimes> read_core_times(const std::vector<int>& cores, const std::string& root = "");

// Run-queue wait of a process's threads, counted on even if threads end.
class RunQueueWait {
 public:
  RunQueueWait(pid_t process, std::string root) : process_(process), root_(std::move(root)) {}
  // Returns the seconds that its threads have waited, from the first call on; none if the system does not count them.
  std::optional<double> read();

 private:
  pid_t process_;
  std::string root_;
  std::map<std::string, double> threads_;  // by thread
  bool is_first_ = true;
  double total_ = 0.0;
};

// Measures intervals, one after the other. The first begins with the constructor.
class ProcessorClock {
 public:
  // `cores`: those that the process computes on. `process`: 0 for this one. `root`: prefix of the files, for tests.
  explicit ProcessorClock(std::vector<int> cores = allowed_cores(), pid_t process = 0, std::string root = "");

  // The present interval begins anew: the time until now is left out.
  void restart() { last_ = read(); }
  // Ends the interval, and begins the next.
  ProcessorTime take();

 private:
  struct Reading {
    std::chrono::steady_clock::time_point at;
    double used = 0.0;
    std::optional<double> waited{};
    std::optional<CoreTimes> cores{};
  };

  Reading read();
  double used_seconds() const;
  double throttled_seconds() const;
  // Others' part of the capacity between two readings, and what was stolen of it; none if unknown.
  struct OthersPart {
    double others = 0.0;
    double stolen = 0.0;
  };
  std::optional<OthersPart> others_between(const Reading& from, const Reading& to) const;

  std::vector<int> cores_;
  double capacity_;  // in cores
  pid_t process_;
  std::string root_;
  std::vector<std::string> quota_files_;
  RunQueueWait wait_;
  Reading last_;
  std::deque<Reading> recent_;  // oldest first
};

}  // namespace arbalest::engine::host
