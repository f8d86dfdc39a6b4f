#include "study/child_process.h"

#include <fcntl.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/time.h>
#include <sys/wait.h>
#include <unistd.h>

#include <array>
#include <cerrno>
#include <chrono>
#include <csignal>
#include <cstring>
#include <thread>
#include <utility>

#include "engine/base/error.h"
#include "messages/failure.h"
#include "saved_model/atomic_file.h"

namespace arbalest::jobs {

namespace {

// Both ends are closed when a program is executed.
class Pipe {
 public:
  Pipe() {
    if (pipe2(ends_.data(), O_CLOEXEC) != 0) fail_prepare(errno);
  }
  ~Pipe() {
    close(ends_[0]);
    close_writer();
  }
  Pipe(const Pipe&) = delete;
  Pipe& operator=(const Pipe&) = delete;

  int writer() const { return ends_[1]; }
  void close_writer() {
    if (ends_[1] >= 0) close(std::exchange(ends_[1], -1));
  }
  // Returns 0 if the writer was closed without writing.
  int read_error() const {
    int error = 0;
    while (read(ends_[0], &error, sizeof error) < 0 && errno == EINTR) {
    }
    return error;
  }

 private:
  [[noreturn]] static void fail_prepare(int error) {
    engine::fail(kind_of_errno(error), "cannot prepare a process: {}", std::strerror(error));
  }

  std::array<int, 2> ends_{-1, -1};
};

// Work of the new process until it executes the program. Other threads may have held locks when it was forked, so
// nothing here may allocate or lock. The process gets SIGTERM when the thread that forked it ends, and so whenever our
// process ends. SIGTERM is reset to its default first, because our own handler would catch it until the exec.
bool become(const ChildCommand& command, char* const* arguments, int log, pid_t parent) {
  if (setpgid(0, 0) != 0 || std::signal(SIGTERM, SIG_DFL) == SIG_ERR) return false;
  if (prctl(PR_SET_PDEATHSIG, SIGTERM) != 0) return false;
  if (getppid() != parent) _exit(1);  // the parent ended before PR_SET_PDEATHSIG took effect
  const int input = open("/dev/null", O_RDONLY);
  if (input < 0 || dup2(input, STDIN_FILENO) < 0) return false;
  if (dup2(log, STDOUT_FILENO) < 0 || dup2(log, STDERR_FILENO) < 0) return false;
  if (input > STDERR_FILENO) close(input);
  execve(command.program.c_str(), arguments, command.environment);
  return false;
}

pid_t start(const ChildCommand& command) {
  std::vector<char*> arguments;
  for (const std::string& argument : command.arguments) arguments.push_back(const_cast<char*>(argument.c_str()));
  arguments.push_back(nullptr);
  Pipe failure;
  const int log = open(command.log.c_str(), O_WRONLY | O_CREAT | O_EXCL | O_APPEND | O_CLOEXEC, 0666);
  if (log < 0) fail_write(command.log, errno);
  const pid_t parent = getpid();
  const pid_t process = fork();
  if (process == 0 && !become(command, arguments.data(), log, parent)) {
    const int error = errno;
    const ssize_t written = write(failure.writer(), &error, sizeof error);
    _exit(written == sizeof error ? 1 : 2);
  }
  int error = process < 0 ? errno : 0;
  close(log);
  failure.close_writer();
  if (process > 0) error = failure.read_error();
  if (error == 0) return process;
  if (process > 0) waitpid(process, nullptr, 0);
  engine::fail(kind_of_errno(error), "cannot start '{}': {}", command.program, std::strerror(error));
}

double seconds_of(const timeval& time) {
  return static_cast<double>(time.tv_sec) + 1e-6 * static_cast<double>(time.tv_usec);
}

}  // namespace

ChildEnd run_child(const ChildCommand& command, const std::atomic<int>& stop_signal) {
  constexpr std::chrono::milliseconds kInterval{20};  // longest delay of a stop signal; the child measures its own time
  ChildEnd end;
  const pid_t process = start(command);
  for (;;) {
    int status = 0;
    rusage use{};
    const pid_t ended = wait4(process, &status, WNOHANG, &use);
    if (ended == process) {
      end.processor_seconds = seconds_of(use.ru_utime) + seconds_of(use.ru_stime);
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
    if (command.watch) command.watch(process);
    std::this_thread::sleep_for(kInterval);
  }
}

}  // namespace arbalest::jobs
