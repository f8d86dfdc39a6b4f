// A waiting thread lends its core. The borrower first binds itself to another core, so that only lending can move it.
// Then it checks its core until it has moved. The time limit of the checks only matters for a failing test.
#include "engine/cpu/runtime/core_lending.h"

#include <sched.h>
#include <unistd.h>

#include <atomic>
#include <chrono>
#include <fstream>
#include <latch>
#include <string>
#include <thread>

#include <fmt/format.h>

#include "engine/backends/devices.h"
#include "engine/cpu/runtime/stream.h"
#include "engine/host/topology.h"
#include "tests/support/catch.h"
#include "tests/support/skip.h"

namespace arbalest::tests {
namespace {

using engine::cpu::CoreLending;
using engine::cpu::CpuStream;
using engine::cpu::make_task;
using engine::cpu::TaskContext;

void go_to(int core) {
  cpu_set_t cores;
  CPU_ZERO(&cores);
  CPU_SET(static_cast<std::size_t>(core), &cores);
  sched_setaffinity(0, sizeof cores, &cores);
}

constexpr std::chrono::seconds kPatience(20);

bool comes_to(int core) {
  const auto start = std::chrono::steady_clock::now();
  while (sched_getcpu() != core) {
    if (std::chrono::steady_clock::now() - start > kPatience) return false;
  }
  return true;
}

// Waits until the thread sleeps. Returns false if it does not within kPatience.
bool falls_asleep(pid_t thread) {
  const auto start = std::chrono::steady_clock::now();
  while (std::chrono::steady_clock::now() - start < kPatience) {
    std::ifstream file(fmt::format("/proc/self/task/{}/stat", thread));
    std::string stat;
    std::getline(file, stat);
    if (stat.find(") S") != std::string::npos) return true;
  }
  return false;
}

int allowed_count() {
  cpu_set_t cores;
  CPU_ZERO(&cores);
  sched_getaffinity(0, sizeof cores, &cores);
  return CPU_COUNT(&cores);
}

void need_two_cores() {
  if (engine::host::allowed_cores().size() < 2) skip_test("needs two cores");
}

// Runs the borrower and the lender on two cores. The lender waits for `target`. Meanwhile the borrower checks whether
// it is moved to the lender's core. Returns whether it was moved, and how many cores it may use after the wait.
std::pair<bool, int> lend(CoreLending& lending, CoreLending::Seat& lender, const CoreLending::Seat& target,
                          CoreLending::Seat& borrower) {
  const std::vector<int> cores = engine::host::allowed_cores();
  bool came = false;
  int allowed = 0;
  std::latch away(1), looked(1), over(1);
  std::jthread borrowing([&] {
    lending.enter(borrower);
    go_to(cores[0]);
    away.count_down();
    came = comes_to(cores[1]);
    looked.count_down();
    over.wait();
    allowed = allowed_count();
  });
  std::jthread lending_thread([&] {
    lending.enter(lender);
    go_to(cores[1]);
    away.wait();
    {
      const CoreLending::Wait wait(lending, lender, target);
      looked.wait();
    }
    over.count_down();
  });
  borrowing.join();
  return {came, allowed};
}

}  // namespace

TEST_CASE("a waiting thread lends its core to the thread it waits for, and releases that thread afterwards") {
  need_two_cores();
  CoreLending lending;
  CoreLending::Seat& borrower = lending.reserve(true);
  const auto [came, allowed] = lend(lending, lending.reserve(true), borrower, borrower);
  CHECK(came);
  CHECK(allowed == static_cast<int>(engine::host::allowed_cores().size()));
}

TEST_CASE("in a chain of waits the core is lent to the last thread, not to one in the middle") {
  need_two_cores();
  CoreLending lending;
  CoreLending::Seat& borrower = lending.reserve(true);
  CoreLending::Seat& averaging = lending.reserve(false);
  const CoreLending::Wait between(lending, averaging, borrower);
  const auto [came, allowed] = lend(lending, lending.reserve(true), averaging, borrower);
  CHECK(came);
  CHECK(allowed == static_cast<int>(engine::host::allowed_cores().size()));
}

TEST_CASE("a stream that waits for an event lends its core") {
  need_two_cores();
  const std::vector<int> cores = engine::host::allowed_cores();
  CoreLending lending;
  CpuStream::Options options;
  options.name = "cpu learner";
  options.lending = &lending;
  CpuStream borrower(options);
  CpuStream lender(options);
  bool came = false;
  std::latch away(1);
  borrower.submit(make_task([&](const TaskContext&) {
                    go_to(cores[0]);
                    away.count_down();
                    came = comes_to(cores[1]);
                  }),
                  "look");
  lender.submit(make_task([&](const TaskContext&) {
                  away.wait();
                  go_to(cores[1]);
                }),
                "go");
  lender.wait(borrower.record(), "wait");
  lender.drain();
  CHECK(came);
}

TEST_CASE("streams of a CPU device lend cores unless lending is disabled") {
  need_two_cores();
  const bool lends = GENERATE(true, false);
  CAPTURE(lends);
  const auto device = engine::open_device(engine::parse_device("cpu"), {.lend_cores = lends});
  const auto borrower = device->create_stream({.name = "borrower"});
  const auto lender = device->create_stream({.name = "lender"});
  std::latch ready(2);  // the borrower runs, and all work is enqueued
  std::atomic<pid_t> waiting = 0;
  bool slept = false;
  int allowed = 0;
  dynamic_cast<CpuStream&>(*borrower).submit(make_task([&](const TaskContext&) {
                                               ready.count_down();
                                               while (waiting == 0) sched_yield();
                                               slept = falls_asleep(waiting);
                                               allowed = allowed_count();
                                             }),
                                             "look");
  dynamic_cast<CpuStream&>(*lender).submit(make_task([&](const TaskContext&) {
                                             ready.wait();  // from now on it only waits for the borrower
                                             waiting = gettid();
                                           }),
                                           "go");
  lender->wait(borrower->record(), "wait");
  ready.count_down();
  borrower->drain();
  lender->drain();
  CHECK(slept);
  CHECK(allowed == (lends ? 1 : static_cast<int>(engine::host::allowed_cores().size())));
}

TEST_CASE("a free seat is reused") {
  CoreLending lending;
  CoreLending::Seat& first = lending.reserve(true);
  CHECK(&lending.reserve(true) != &first);
  lending.leave(first);
  CHECK(&lending.reserve(false) == &first);
}

}  // namespace arbalest::tests
