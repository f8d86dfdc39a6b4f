// Runs child processes the way a bench does.
#include <sys/prctl.h>
#include <sys/wait.h>
#include <unistd.h>

#include <atomic>
#include <csignal>
#include <filesystem>
#include <string>
#include <thread>

#include "engine/base/error.h"
#include "study/child_process.h"
#include "tests/support/catch.h"
#include "tests/support/temporary_directory.h"

namespace arbalest::jobs {

namespace fs = std::filesystem;

TEST_CASE("child process: exit code, signal and output are kept") {
  const tests::TemporaryDirectory directory;
  const std::atomic<int> no_signal{0};
  const auto run = [&](const std::string& script, const std::string& log) {
    return run_child({"/bin/sh", {"sh", "-c", script}, environ, directory / log}, no_signal);
  };
  const ChildEnd exited = run("echo result; echo message >&2; exit 7", "a.log");
  CHECK(exited.exit_code == 7);
  CHECK(exited.signal == 0);
  CHECK(tests::read_text(directory / "a.log") == "result\nmessage\n");
  const ChildEnd killed = run("kill -KILL $$", "b.log");
  CHECK(killed.signal == SIGKILL);
  CHECK_FALSE(killed.was_stopped);
  CHECK_THROWS_AS(run("true", "a.log"), engine::Error);  // a log is never overwritten
  CHECK_THROWS_WITH(run_child({"/no/such/program", {"x"}, environ, directory / "c.log"}, no_signal),
                    ContainsSubstring("/no/such/program"));
}

TEST_CASE("child process: gets our stop signal once, and may choose how it ends") {
  const tests::TemporaryDirectory directory;
  std::atomic<int> signal{0};
  std::thread stopper([&] {
    const auto is_ready = [&] {
      return std::filesystem::exists(directory / "log") &&
             tests::read_text(directory / "log").find("ready") != std::string::npos;
    };
    while (!is_ready()) std::this_thread::yield();
    signal = SIGTERM;
  });
  tests::write_text(directory / "script",
                    "trap 'echo stopped; exit 3' TERM\necho ready\nwhile :; do sleep 0.05; done\n");
  struct Joiner {
    std::thread& thread;
    ~Joiner() { thread.join(); }
  } joiner{stopper};
  const ChildEnd end =
      run_child({"/bin/sh", {"sh", (directory / "script").string()}, environ, directory / "log"}, signal);
  CHECK(end.was_stopped);
  CHECK(end.exit_code == 3);
  CHECK(tests::read_text(directory / "log") == "ready\nstopped\n");
}

TEST_CASE("child process: ends with the thread that waits for it, unless a signal was sent to it before") {
  const tests::TemporaryDirectory directory;
  REQUIRE(prctl(PR_SET_CHILD_SUBREAPER, 1) == 0);  // this process becomes the orphan's parent
  const pid_t parent = fork();
  REQUIRE(parent >= 0);
  if (parent == 0) {
    const std::atomic<int> no_signal{0};
    run_child({"/bin/sh", {"sh", "-c", "echo $$; exec sleep 1000"}, environ, directory / "log"}, no_signal);
    _exit(1);
  }
  const auto said = [&] { return fs::exists(directory / "log") ? tests::read_text(directory / "log") : std::string(); };
  while (said().empty()) std::this_thread::yield();
  const pid_t child = std::stoi(said());
  kill(parent, SIGKILL);
  int status = 0;
  REQUIRE(waitpid(parent, &status, 0) == parent);
  REQUIRE(waitpid(child, &status, 0) == child);
  CHECK((WIFSIGNALED(status) && WTERMSIG(status) == SIGTERM));
  prctl(PR_SET_CHILD_SUBREAPER, 0);
}

}  // namespace arbalest::jobs
