// Runs a program in a test: its output, its exit status, and signals sent to it while it runs.
#pragma once

#include <fcntl.h>
#include <poll.h>
#include <spawn.h>
#include <sys/wait.h>
#include <unistd.h>

#include <array>
#include <cerrno>
#include <csignal>
#include <filesystem>
#include <fstream>
#include <stdexcept>
#include <string>
#include <string_view>
#include <vector>

namespace arbalest::tests {

struct Completed {
  int exit_code = 0;  // negative signal number if a signal ended the program
  std::string out;
  std::string err;
};

// Waits without time limit: ctest ends a test that hangs.
class Subprocess {
 public:
  // `arguments[0]`: path of the program. `environment`: all of the program's variables, "NAME=value".
  Subprocess(const std::vector<std::string>& arguments, const std::vector<std::string>& environment,
             const std::filesystem::path& directory) {
    std::array<int, 2> out{};
    std::array<int, 2> err{};
    if (pipe2(out.data(), O_CLOEXEC) != 0 || pipe2(err.data(), O_CLOEXEC) != 0) throw std::runtime_error("pipe2");
    posix_spawn_file_actions_t actions;
    posix_spawn_file_actions_init(&actions);
    posix_spawn_file_actions_addopen(&actions, STDIN_FILENO, "/dev/null", O_RDONLY, 0);
    posix_spawn_file_actions_adddup2(&actions, out[1], STDOUT_FILENO);
    posix_spawn_file_actions_adddup2(&actions, err[1], STDERR_FILENO);
    posix_spawn_file_actions_addchdir_np(&actions, directory.c_str());
    // The caller of the tests may ignore signals, which a new program would inherit.
    posix_spawnattr_t attributes;
    posix_spawnattr_init(&attributes);
    sigset_t all;
    sigfillset(&all);
    posix_spawnattr_setsigdefault(&attributes, &all);
    posix_spawnattr_setflags(&attributes, POSIX_SPAWN_SETSIGDEF);
    const int error = posix_spawn(&process_, arguments.front().c_str(), &actions, &attributes,
                                  pointers(arguments).data(), pointers(environment).data());
    posix_spawn_file_actions_destroy(&actions);
    posix_spawnattr_destroy(&attributes);
    close(out[1]);
    close(err[1]);
    streams_ = {Stream{out[0], {}}, Stream{err[0], {}}};
    if (error != 0) throw std::runtime_error("cannot run " + arguments.front());
  }
  ~Subprocess() {
    for (const Stream& stream : streams_) {
      if (stream.file >= 0) close(stream.file);
    }
    if (!finished_) {
      kill(process_, SIGKILL);
      waitpid(process_, nullptr, 0);
    }
  }
  Subprocess(const Subprocess&) = delete;
  Subprocess& operator=(const Subprocess&) = delete;

  pid_t process() const { return process_; }

  void send(int signal) const { kill(process_, signal); }

  bool is_running() const {
    siginfo_t info{};
    return waitid(P_PID, static_cast<id_t>(process_), &info, WEXITED | WNOHANG | WNOWAIT) == 0 && info.si_pid == 0;
  }

  // Whether the program has installed a handler for `signal`.
  bool catches(int signal) const {
    std::ifstream status("/proc/" + std::to_string(process_) + "/status");
    for (std::string line; std::getline(status, line);) {
      if (line.starts_with("SigCgt:")) return (std::stoull(line.substr(7), nullptr, 16) >> (signal - 1) & 1) != 0;
    }
    return false;
  }

  // Returns false if the program closed its stderr before it wrote `text`.
  bool wait_for_message(std::string_view text) {
    while (streams_[1].text.find(text) == std::string::npos) {
      if (!read_some()) return false;
    }
    return true;
  }

  Completed wait() {
    while (read_some()) {
    }
    int status = 0;
    while (waitpid(process_, &status, 0) < 0 && errno == EINTR) {
    }
    finished_ = true;
    const int code = WIFEXITED(status) ? WEXITSTATUS(status) : -WTERMSIG(status);
    return {code, streams_[0].text, streams_[1].text};
  }

 private:
  struct Stream {
    int file = -1;
    std::string text;
  };

  static std::vector<char*> pointers(const std::vector<std::string>& texts) {
    std::vector<char*> result;
    for (const std::string& text : texts) result.push_back(const_cast<char*>(text.c_str()));
    result.push_back(nullptr);
    return result;
  }

  // Blocks until there is output. Returns false once both streams are closed.
  bool read_some() {
    std::array<pollfd, 2> waiting{pollfd{streams_[0].file, POLLIN, 0}, pollfd{streams_[1].file, POLLIN, 0}};
    if (waiting[0].fd < 0 && waiting[1].fd < 0) return false;
    if (poll(waiting.data(), waiting.size(), -1) < 0) return errno == EINTR;
    for (std::size_t i = 0; i < streams_.size(); ++i) {
      if (waiting[i].revents == 0) continue;
      std::array<char, 4096> buffer{};
      const ssize_t count = read(streams_[i].file, buffer.data(), buffer.size());
      if (count > 0) {
        streams_[i].text.append(buffer.data(), static_cast<std::size_t>(count));
      } else {
        close(streams_[i].file);
        streams_[i].file = -1;
      }
    }
    return true;
  }

  pid_t process_ = 0;
  bool finished_ = false;
  std::array<Stream, 2> streams_;
};

}  // namespace arbalest::tests
