// The processor time that a process gets and loses. Expected values are worked out by hand.
#include "engine/host/processor_time.h"

#include <pthread.h>
#include <sched.h>
#include <sys/wait.h>
#include <unistd.h>

#include <atomic>
#include <csignal>
#include <cstdlib>
#include <filesystem>
#include <optional>
#include <string>
#include <thread>
#include <vector>

#include "engine/host/cgroup.h"
#include "engine/host/thread_time.h"
#include "tests/support/catch.h"
#include "tests/support/temporary_directory.h"

namespace arbalest::tests {

namespace {

namespace host = engine::host;

void write(const TemporaryDirectory& root, const std::string& path, const std::string& text) {
  const std::filesystem::path file = root.path() / path;
  std::filesystem::create_directories(file.parent_path());
  write_text(file, text);
}

// Catch2's assertions are for one thread.
void pin_to(int core) {
  cpu_set_t only;
  CPU_ZERO(&only);
  CPU_SET(core, &only);
  if (pthread_setaffinity_np(pthread_self(), sizeof only, &only) != 0) std::abort();
}

// A process that computes on a core until it is destroyed.
class Neighbor {
 public:
  explicit Neighbor(int core) : process_(fork()) {
    if (process_ != 0) return;
    cpu_set_t only;
    CPU_ZERO(&only);
    CPU_SET(core, &only);
    sched_setaffinity(0, sizeof only, &only);
    alarm(60);  // it ends by itself in any case
    for (std::atomic<int> i = 0;;) i.fetch_add(1, std::memory_order_relaxed);
  }
  ~Neighbor() {
    kill(process_, SIGKILL);
    waitpid(process_, nullptr, 0);
  }
  Neighbor(const Neighbor&) = delete;
  Neighbor& operator=(const Neighbor&) = delete;

 private:
  pid_t process_;
};

void compute_for(double processor_seconds) {
  const double end = host::thread_cpu_seconds() + processor_seconds;
  while (host::thread_cpu_seconds() < end) {
  }
}

}  // namespace

TEST_CASE("processor time: the least of waiting, unused cores and others' use is lost", "[host]") {
  const auto lost = [](double used, double waited, double others) {
    return host::processor_time({.seconds = 1.0, .capacity = 2.0, .used = used, .waited = waited, .others = others})
        .lost;
  };
  CHECK(lost(2.0, 0.0, 0.0) == 0.0);                          // alone
  CHECK(lost(2.0, 2.0, 0.0) == 0.0);                          // four threads on two cores wait for each other
  CHECK(lost(1.5, 2.0, 0.0) == 0.0);                          // and at a barrier one core is idle
  CHECK(lost(1.0, 0.0, 1.0) == 0.0);                          // one thread; the neighbor has the other core
  CHECK(lost(4.0 / 3, 2.0 / 3, 2.0 / 3) == Approx(2.0 / 3));  // two threads and a neighbor share two cores
  CHECK(lost(1.0, 3.0, 1.0) == Approx(1.0));                  // four threads; the neighbor has a core
  CHECK(lost(1.0, 0.25, 1.0) == Approx(0.25));
  const host::ProcessorTime time =
      host::processor_time({.seconds = 1.0, .capacity = 2.0, .used = 1.5, .waited = 0.5, .others = 0.5});
  CHECK(time.is_known);
  CHECK(time.lost_share() == Approx(0.25));
  CHECK(host::ProcessorTime{}.lost_share() == 0.0);
}

TEST_CASE("processor time: stolen time is lost in proportion, and missing counters are no bounds", "[host]") {
  CHECK(
      host::processor_time({.seconds = 1.0, .capacity = 2.0, .used = 1.5, .waited = 0.0, .others = 0.5, .stolen = 0.4})
          .lost == Approx(0.3));
  CHECK(host::processor_time({.seconds = 1.0, .capacity = 2.0, .used = 1.5, .waited = 0.0, .others = {}}).lost == 0.0);
  CHECK(host::processor_time({.seconds = 1.0, .capacity = 2.0, .used = 1.5, .waited = {}, .others = 0.2}).lost ==
        Approx(0.2));
  const host::ProcessorTime unknown =
      host::processor_time({.seconds = 1.0, .capacity = 2.0, .used = 0.5, .waited = {}, .others = {}});
  CHECK_FALSE(unknown.is_known);
  CHECK(unknown.lost == 0.0);
  CHECK(unknown.used == 0.5);
}

TEST_CASE("processor time: times of cores come from their lines of /proc/stat", "[host]") {
  const TemporaryDirectory root;
  write(root, "proc/stat",
        "cpu  999 9 9 9 9 9 9 9 0 0\n"
        "cpu0 100 1 20 300 4 5 6 7 50 0\n"
        "cpu1 10 0 0 50 0 0 0 0 0 0\n"
        "cpu10 1 1 1 1 1 1 1 1 1 1\n"
        "intr 17\n");
  const auto both = host::read_core_times({0, 1}, root.path().string());
  REQUIRE(both.has_value());
  CHECK(both->idle == Approx(3.54));  // (300 + 4 + 50) hundredths
  CHECK(both->stolen == Approx(0.07));
  CHECK(both->all == Approx(5.03));
  CHECK(host::read_core_times({1}, root.path().string())->idle == Approx(0.5));
  CHECK_FALSE(host::read_core_times({0, 2}, root.path().string()).has_value());
  CHECK_FALSE(host::read_core_times({0}, "/nowhere").has_value());
}

TEST_CASE("processor time: the wait of threads counts on when threads begin and end", "[host]") {
  const TemporaryDirectory root;
  write(root, "proc/7/task/7/schedstat", "5 1000000000 3\n");
  write(root, "proc/7/task/8/schedstat", "5 2000000000 3\n");
  host::RunQueueWait wait(7, root.path().string());
  CHECK(wait.read() == 0.0);
  write(root, "proc/7/task/7/schedstat", "5 1500000000 3\n");
  std::filesystem::remove_all(root / "proc/7/task/8");
  write(root, "proc/7/task/9/schedstat", "5 250000000 3\n");
  CHECK(wait.read().value() == Approx(0.75));
  write(root, "proc/7/task/9/schedstat", "5 100000000 3\n");  // another thread with the same number
  CHECK(wait.read().value() == Approx(0.85));
  host::RunQueueWait none(6, root.path().string());
  CHECK_FALSE(none.read().has_value());
}

TEST_CASE("processor time: the time that a quota held threads, in both versions of control groups", "[host]") {
  const TemporaryDirectory root;
  write(root, "proc/self/mountinfo",
        "30 23 0:26 / /two rw - cgroup2 cgroup2 rw\n31 23 0:27 / /one rw - cgroup cgroup rw,cpu,cpuacct\n");
  write(root, "proc/self/cgroup", "0::/job\n3:cpu,cpuacct:/job\n");
  write(root, "two/job/cpu.stat", "usage_usec 9\nnr_throttled 2\nthrottled_usec 1500000\n");
  write(root, "one/job/cpu.stat", "nr_periods 4\nnr_throttled 2\nthrottled_time 250000000\n");
  double seconds = 0.0;
  for (const std::string& file : host::cgroup_quota_files(root.path().string())) {
    seconds += host::read_throttled_seconds(file);
  }
  CHECK(seconds == Approx(1.75));
  CHECK(host::cgroup_quota_files("/nowhere").empty());
}

// Two busy threads share a core, so each gets about half of it, whatever else the machine does.
TEST_CASE("processor time: beside a busy process on its core a thread waits, and loses time to it", "[host]") {
  const int core = host::allowed_cores().front();
  host::ProcessorTime time;
  std::optional<double> waited;
  std::thread([&] {
    pin_to(core);
    const Neighbor neighbor(core);
    compute_for(0.05);  // until the neighbor runs
    host::RunQueueWait wait(0, "");
    wait.read();
    host::ProcessorClock clock({core});
    compute_for(0.5);
    time = clock.take();
    waited = wait.read();
  }).join();
  REQUIRE(time.is_known);
  CHECK(time.used >= 0.5);
  CHECK(time.used < time.seconds);
  if (waited) {
    CHECK(*waited > 0.1);
    CHECK(time.lost <= *waited);
  }
  CHECK(time.lost > 0.1);
  CHECK(time.lost_share() > 0.05);
}

// The two threads have the core in turns. What they wait for each other is more than what others used.
TEST_CASE("processor time: threads of one process that share a core wait, but that is no loss", "[host]") {
  const int core = host::allowed_cores().front();
  std::atomic<bool> ends = false;
  std::thread other([&] {
    pin_to(core);
    while (!ends) {
    }
  });
  host::ProcessorTime time;
  std::optional<double> waited;
  std::thread([&] {
    pin_to(core);
    compute_for(0.05);
    host::RunQueueWait wait(0, "");
    wait.read();
    host::ProcessorClock clock({core});
    compute_for(0.4);
    time = clock.take();
    waited = wait.read();
  }).join();
  ends = true;
  other.join();
  REQUIRE(time.is_known);
  CHECK(time.used >= 0.4);
  if (waited) CHECK(*waited > 0.2);
  CHECK(time.lost <= time.seconds - time.used + 0.01);
}

}  // namespace arbalest::tests
