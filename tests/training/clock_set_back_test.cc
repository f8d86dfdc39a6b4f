// A machine whose clock is set back while a run trains. This program replaces clock_gettime.
#include <sys/syscall.h>
#include <unistd.h>

#include <atomic>
#include <chrono>
#include <ctime>
#include <filesystem>

#include "checkpoint/checkpoint_saver.h"
#include "checkpoint/checkpoint_store.h"
#include "report/resume_point.h"
#include "tests/support/catch.h"
#include "tests/support/temporary_directory.h"
#include "tests/training/watched_run.h"

namespace {

// The time of day goes back by an hour at each look, if this is set. The clock that counts from the start of the
// machine goes on.
std::atomic<bool> is_set_back = false;
std::atomic<std::time_t> hours = 0;

}  // namespace

extern "C" int clock_gettime(clockid_t clock, timespec* time) {
  constexpr std::time_t kHour = 3600;
  const auto result = static_cast<int>(syscall(SYS_clock_gettime, clock, time));
  if (is_set_back && clock == CLOCK_REALTIME) time->tv_sec -= kHour * ++hours;
  return result;
}

namespace arbalest::tests {
namespace {

namespace fs = std::filesystem;

class ClockSetBack {
 public:
  ClockSetBack() { is_set_back = true; }
  ~ClockSetBack() { is_set_back = false; }
  ClockSetBack(const ClockSetBack&) = delete;
  ClockSetBack& operator=(const ClockSetBack&) = delete;
};

}  // namespace

TEST_CASE("a clock that is set back delays no checkpoint, and a run goes on from the newest one", "[checkpoint]") {
  const jobs::JobOptions job = short_job(
      "logistic-digits.txtpb", {"training.max_epochs=12", "checkpoint={every_minutes: 0.00001 keep_last: 99}"});
  const TemporaryDirectory output;
  Watcher watcher({});
  jobs::RunContext context;
  context.output_directory = output.path().string();
  context.observers = {&watcher};
  {
    const ClockSetBack clock;
    const auto before = std::chrono::system_clock::now();
    REQUIRE(std::chrono::system_clock::now() < before);
    CHECK(jobs::train(job, context).status == jobs::RunStatus::kCompleted);
  }
  REQUIRE(watcher.checkpoints.size() > 2);  // the last one is that of the end
  for (std::size_t i = 1; i < watcher.checkpoints.size(); ++i) {
    CHECK(watcher.checkpoints[i].elapsed_seconds > watcher.checkpoints[i - 1].elapsed_seconds);
  }
  // The newest checkpoint seems to be the oldest.
  const fs::path newest = watcher.checkpoints.back().path;
  const auto oldest_time = fs::last_write_time(watcher.checkpoints.front().path);
  fs::last_write_time(newest, oldest_time - std::chrono::hours(1));
  const auto ignore = [](const std::string&) {};
  CHECK(jobs::newest_resume_point(output.path(), job, ignore).value().path == newest);
  jobs::retain(jobs::checkpoints_of(output.path()), 1, {}, ignore);
  CHECK(fs::exists(newest));
  CHECK(jobs::list_checkpoints(jobs::checkpoints_of(output.path())).size() == 1);
}

}  // namespace arbalest::tests
