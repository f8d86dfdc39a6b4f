#include "engine/host/processor_time.h"

#include <unistd.h>

#include <algorithm>
#include <ctime>
#include <filesystem>
#include <fstream>
#include <limits>
#include <sstream>
#include <system_error>
#include <utility>

#include "engine/host/cgroup.h"

namespace arbalest::engine::host {

namespace {

constexpr double kNanosecond = 1e-9;
constexpr double kTick = 0.01;  // resolution of /proc/stat: USER_HZ is 100 on every Linux
constexpr std::chrono::seconds kRecent{1};

std::string task_directory(const std::string& root, pid_t process) {
  return root + "/proc/" + (process == 0 ? "self" : std::to_string(process)) + "/task";
}

}  // namespace

ProcessorTime processor_time(const ProcessorInterval& interval) {
  ProcessorTime time{.seconds = interval.seconds, .used = interval.used};
  time.is_known = interval.waited.has_value() || interval.others.has_value();
  if (!time.is_known) return time;
  constexpr double kNoBound = std::numeric_limits<double>::infinity();
  const double unused = interval.capacity - interval.used;
  const double bound = std::min({unused, interval.waited.value_or(kNoBound), interval.others.value_or(kNoBound)});
  time.lost = std::max(0.0, bound);
  const double busy = interval.used + std::max(0.0, interval.others.value_or(0.0));
  if (busy > 0.0) time.lost += std::max(0.0, interval.stolen) * interval.used / busy;
  return time;
}

std::optional<CoreTimes> read_core_times(const std::vector<int>& cores, const std::string& root) {
  std::ifstream file(root + "/proc/stat");
  CoreTimes times;
  std::size_t found = 0;
  for (std::string line; std::getline(file, line) && line.starts_with("cpu");) {
    std::istringstream words(line.substr(3));
    if (line.starts_with("cpu ")) continue;  // the sum of all cores
    int core = -1;
    // man 5 proc; guest times are part of user and nice
    double user = 0, nice = 0, system = 0, idle = 0, disk = 0, interrupts = 0, soft_interrupts = 0, stolen = 0;
    words >> core >> user >> nice >> system >> idle >> disk >> interrupts >> soft_interrupts >> stolen;
    if (words.fail() || std::ranges::find(cores, core) == cores.end()) continue;
    ++found;
    times.idle += kTick * (idle + disk);
    times.stolen += kTick * stolen;
    times.all += kTick * (user + nice + system + idle + disk + interrupts + soft_interrupts + stolen);
  }
  if (cores.empty() || found != cores.size()) return std::nullopt;
  return times;
}

std::optional<double> RunQueueWait::read() {
  std::map<std::string, double> now;
  std::error_code error;
  for (std::filesystem::directory_iterator thread(task_directory(root_, process_), error), end; !error && thread != end;
       thread.increment(error)) {
    std::ifstream file(thread->path() / "schedstat");  // nanoseconds running, nanoseconds ready, times it ran
    double running = 0.0;
    double ready = 0.0;
    if (file >> running >> ready) now[thread->path().filename().string()] = kNanosecond * ready;
  }
  if (now.empty() && threads_.empty()) return std::nullopt;
  for (const auto& [thread, seconds] : now) {
    const auto before = threads_.find(thread);
    // A new thread may have the number of one that has ended.
    const double since = before == threads_.end() || before->second > seconds ? 0.0 : before->second;
    if (!is_first_) total_ += seconds - since;
  }
  is_first_ = false;
  threads_ = std::move(now);
  return total_;
}

ProcessorClock::ProcessorClock(std::vector<int> cores, pid_t process, std::string root)
    : cores_(std::move(cores)),
      capacity_(std::min(static_cast<double>(cores_.size()),
                         read_cgroup_limits(root).cores.value_or(std::numeric_limits<double>::infinity()))),
      process_(process),
      root_(std::move(root)),
      quota_files_(cgroup_quota_files(root_)),
      wait_(process, root_),
      last_(read()) {
  recent_.push_back(last_);
}

double ProcessorClock::used_seconds() const {
  clockid_t clock = CLOCK_PROCESS_CPUTIME_ID;
  timespec time{};
  if (process_ != 0 && clock_getcpuclockid(process_, &clock) != 0) return last_.used;  // it has ended
  if (clock_gettime(clock, &time) != 0) return last_.used;
  return static_cast<double>(time.tv_sec) + kNanosecond * static_cast<double>(time.tv_nsec);
}

double ProcessorClock::throttled_seconds() const {
  double seconds = 0.0;
  for (const std::string& path : quota_files_) seconds += read_throttled_seconds(path);
  return seconds;
}

ProcessorClock::Reading ProcessorClock::read() {
  Reading reading{.at = std::chrono::steady_clock::now(),
                  .used = used_seconds(),
                  .waited = wait_.read(),
                  .cores = read_core_times(cores_, root_)};
  if (reading.waited) *reading.waited += throttled_seconds();
  return reading;
}

std::optional<ProcessorClock::OthersPart> ProcessorClock::others_between(const Reading& from, const Reading& to) const {
  if (!from.cores || !to.cores) return std::nullopt;
  const double seconds = std::chrono::duration<double>(to.at - from.at).count();
  const double capacity = static_cast<double>(cores_.size()) * seconds;
  // Some containers have a file whose numbers stand still.
  if (capacity <= 0.0 ||
      to.cores->all - from.cores->all < 0.5 * capacity - kTick * static_cast<double>(cores_.size())) {
    return std::nullopt;
  }
  const double forgiven = kTick * static_cast<double>(cores_.size());
  const double stolen = std::max(0.0, to.cores->stolen - from.cores->stolen - forgiven);
  const double idle = to.cores->idle - from.cores->idle;
  const double others = capacity - (to.used - from.used) - idle - stolen - forgiven;
  return OthersPart{std::max(0.0, others) / capacity, stolen / capacity};
}

ProcessorTime ProcessorClock::take() {
  const Reading now = read();
  while (recent_.size() > 1 && recent_[1].at + kRecent <= now.at) recent_.pop_front();
  ProcessorInterval interval{.seconds = std::chrono::duration<double>(now.at - last_.at).count(),
                             .used = now.used - last_.used};
  interval.capacity = capacity_ * interval.seconds;
  if (now.waited && last_.waited) interval.waited = *now.waited - *last_.waited;
  const double core_seconds = static_cast<double>(cores_.size()) * interval.seconds;
  for (const Reading* from : std::initializer_list<const Reading*>{&last_, &recent_.front()}) {
    const std::optional<OthersPart> part = others_between(*from, now);
    if (!part) continue;
    interval.others = std::max(interval.others.value_or(0.0), part->others * core_seconds);
    interval.stolen = std::max(interval.stolen, part->stolen * core_seconds);
  }
  last_ = now;
  recent_.push_back(now);
  return processor_time(interval);
}

}  // namespace arbalest::engine::host
