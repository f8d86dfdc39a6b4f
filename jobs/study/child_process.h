// Another program, run to its end.
#pragma once

#include <atomic>
#include <filesystem>
#include <string>
#include <vector>

namespace arbalest::jobs {

struct ChildCommand {
  std::string program;                 // path
  std::vector<std::string> arguments;  // argv, with the name of the program first
  char* const* environment = nullptr;  // "NAME=value", null at the end
  std::filesystem::path log;           // gets stdout and stderr; made anew
};

struct ChildEnd {
  int exit_code = 0;
  int signal = 0;            // that ended it; 0: it exited
  bool was_stopped = false;  // it got our stop signal
};

// Runs the program, without a shell, and waits. In a process group of its own, so that Ctrl-C on the terminal does not
// reach it twice: once `stop_signal` is not 0, the program gets that signal, once. It gets SIGTERM if the calling
// thread ends meanwhile, as it does with our process, by whatever signal. Throws kInternal, or kOutOfMemory, if it
// cannot be started or its log not be made.
ChildEnd run_child(const ChildCommand& command, const std::atomic<int>& stop_signal);

}  // namespace arbalest::jobs
