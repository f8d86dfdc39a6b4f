// One request to stop may come as two signals, and a second request ends the program at once.
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#include <csignal>
#include <filesystem>
#include <thread>

#include "cli/stop_requests.h"
#include "tests/cli/small_run.h"
#include "tests/support/catch.h"

namespace arbalest::tests {
namespace {

using cli::StopRequest;
using cli::StopRequests;

// Sends the signal twice in a row. The program is stopped meanwhile: it finds both when it goes on, one that waits for
// the process and one that waits for its first thread. Two for the process would count as one.
void send_twice(const Subprocess& run, int signal) {
  run.send(SIGSTOP);
  siginfo_t info{};
  REQUIRE(waitid(P_PID, static_cast<id_t>(run.process()), &info, WSTOPPED | WNOWAIT) == 0);
  run.send(signal);
  REQUIRE(syscall(SYS_tgkill, run.process(), run.process(), signal) == 0);
  run.send(SIGCONT);
}

}  // namespace

TEST_CASE("stop signals: the same signal within 0.2 s is the same request, and all others are second ones") {
  constexpr std::int64_t kBegin = 5'000'000'000;
  constexpr std::int64_t kLast = kBegin + 199'999'999;
  for (const int first : {SIGTERM, SIGINT}) {
    const int other = first == SIGTERM ? SIGINT : SIGTERM;
    StopRequests requests;
    CHECK(requests.signal() == 0);
    CHECK(requests.note(first, kBegin) == StopRequest::kFirst);
    CHECK(requests.note(first, kBegin) == StopRequest::kSame);
    CHECK(requests.note(first, kLast) == StopRequest::kSame);
    CHECK(requests.note(other, kBegin + 1) == StopRequest::kSecond);
    // The time counts from the first signal, so a row of signals ends the program, too.
    CHECK(requests.note(first, kLast + 1) == StopRequest::kSecond);
    CHECK(requests.signal() == first);
  }
}

TEST_CASE("stop signals: two SIGTERM in a row, as timeout sends them, stop a run politely") {
  for (const int signal : {SIGTERM, SIGINT}) {
    const Program program;
    Subprocess run = program.start(
        {"train", Program::config("logistic-digits"), "--set", "training.max_epochs=100000", "--output", "run"});
    REQUIRE(run.wait_for_message("\nepoch "));
    send_twice(run, signal);
    const Completed result = run.wait();
    INFO(result.err);
    CHECK(result.exit_code == 128 + signal);
    CHECK_THAT(result.err, ContainsSubstring("stopping and saving") && !ContainsSubstring("stopped at once"));
    REQUIRE(std::filesystem::exists(program / "run/summary.json"));
    CHECK(summary_of(program / "run")["status"] == "stopped");
    CHECK(std::filesystem::exists(program / "run/model.safetensors"));
  }
}

TEST_CASE("stop signals: timeout stops a run politely") {
  const Program program;
  const std::string command = "timeout 2 " ARBALEST_PROGRAM " train " + Program::config("logistic-digits") +
                              " --set training.max_epochs=100000 --output run";
  const Completed result = Subprocess({"/bin/sh", "-c", command}, program.environment(), program.directory()).wait();
  INFO(result.err);
  CHECK(result.exit_code == 124);  // of timeout
  CHECK_THAT(result.err, ContainsSubstring("stopping and saving") && !ContainsSubstring("stopped at once"));
  REQUIRE(std::filesystem::exists(program / "run/summary.json"));
  CHECK(summary_of(program / "run")["status"] == "stopped");
}

}  // namespace arbalest::tests
