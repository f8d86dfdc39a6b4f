// Runs another program to its end.
#pragma once

#include <sys/types.h>

#include <atomic>
#include <filesystem>
#include <functional>
#include <string>
#include <vector>

namespace arbalest::jobs {

struct ChildCommand {
  std::string program;                 // path
  std::vector<std::string> arguments;  // argv; the first one is the program's name
  char* const* environment = nullptr;  // "NAME=value", null at the end
  std::filesystem::path log;           // gets stdout and stderr; an existing file is replaced
  std::function<void(pid_t)> watch{};  // unless empty, called about 50 times a second while the program runs
};

struct ChildEnd {
  int exit_code = 0;
  int signal = 0;                  // signal that ended it; 0: it exited
  bool was_stopped = false;        // whether it got our stop signal
  double processor_seconds = 0.0;  // of its threads, and of processes that it has waited for
};

// Runs the program without a shell and waits for it. The program gets a process group of its own, so that Ctrl-C on the
// terminal does not reach it twice; once `stop_signal` is not 0, it gets that signal, once. It gets SIGTERM if the
// calling thread ends, as when our process is killed. Throws kInternal or kOutOfMemory if it cannot be started or its
// log cannot be created.
ChildEnd run_child(const ChildCommand& command, const std::atomic<int>& stop_signal);

}  // namespace arbalest::jobs
