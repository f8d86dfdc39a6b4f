#include "jobs/study/child_process.h"

#include <fcntl.h>
#include <spawn.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cerrno>
#include <chrono>
#include <csignal>
#include <cstring>
#include <thread>

#include "engine/error.h"
#include "jobs/export/atomic_file.h"
#include "jobs/wording/failure.h"

namespace arbalest::jobs {

namespace {

// What posix_spawn takes; freed with the scope.
class SpawnSettings {
 public:
  explicit SpawnSettings(int log) {
    check(posix_spawn_file_actions_init(&actions_));
    check(posix_spawnattr_init(&attributes_));
    check(posix_spawn_file_actions_addopen(&actions_, STDIN_FILENO, "/dev/null", O_RDONLY, 0));
    check(posix_spawn_file_actions_adddup2(&actions_, log, STDOUT_FILENO));
    check(posix_spawn_file_actions_adddup2(&actions_, log, STDERR_FILENO));
    check(posix_spawnattr_setpgroup(&attributes_, 0));
    check(posix_spawnattr_setflags(&attributes_, POSIX_SPAWN_SETPGROUP));
  }
  ~SpawnSettings() {
    posix_spawn_file_actions_destroy(&actions_);
    posix_spawnattr_destroy(&attributes_);
  }
  SpawnSettings(const SpawnSettings&) = delete;
  SpawnSettings& operator=(const SpawnSettings&) = delete;

  const posix_spawn_file_actions_t* actions() const { return &actions_; }
  const posix_spawnattr_t* attributes() const { return &attributes_; }

 private:
  static void check(int error) {
    if (error != 0) engine::fail(kind_of_errno(error), "cannot prepare a process: {}", std::strerror(error));
  }

  posix_spawn_file_actions_t actions_{};
  posix_spawnattr_t attributes_{};
};

pid_t start(const ChildCommand& command) {
  std::vector<char*> arguments;
  for (const std::string& argument : command.arguments) arguments.push_back(const_cast<char*>(argument.c_str()));
  arguments.push_back(nullptr);
  const int log = open(command.log.c_str(), O_WRONLY | O_CREAT | O_EXCL | O_APPEND | O_CLOEXEC, 0666);
  if (log < 0) fail_write(command.log, errno);
  const SpawnSettings settings(log);
  pid_t process = 0;
  const int error = posix_spawn(&process, command.program.c_str(), settings.actions(), settings.attributes(),
                                arguments.data(), command.environment);
  close(log);
  if (error != 0) {
    engine::fail(kind_of_errno(error), "cannot start '{}': {}", command.program, std::strerror(error));
  }
  return process;
}

}  // namespace

ChildEnd run_child(const ChildCommand& command, const std::atomic<int>& stop_signal) {
  constexpr std::chrono::milliseconds kInterval{20};  // what a stop signal may wait; the child keeps its own time
  ChildEnd end;
  const pid_t process = start(command);
  for (;;) {
    int status = 0;
    const pid_t ended = waitpid(process, &status, WNOHANG);
    if (ended == process) {
      if (WIFSIGNALED(status)) end.signal = WTERMSIG(status);
      if (WIFEXITED(status)) end.exit_code = WEXITSTATUS(status);
      return end;
    }
    if (ended < 0 && errno != EINTR) {
      engine::fail(engine::ErrorKind::kInternal, "cannot wait for a process: {}", std::strerror(errno));
    }
    if (stop_signal != 0 && !end.was_stopped) {
      kill(process, stop_signal);
      end.was_stopped = true;
    }
    std::this_thread::sleep_for(kInterval);
  }
}

}  // namespace arbalest::jobs
