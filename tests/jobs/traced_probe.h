// Runs checkpoint_probe under strace, which can make its system calls fail or kill it. The probe is not changed for
// that.
#pragma once

#include <filesystem>
#include <string>
#include <vector>

#include "tests/support/subprocess.h"

namespace arbalest::tests {

// The when-th call of one kind, counted from the start of the process.
struct SystemCall {
  std::string name;
  int when = 0;
};

class TracedProbe {
 public:
  // `arguments`: those of the probe. Ends the test as skipped if there is no strace here or it may not trace.
  explicit TracedProbe(std::vector<std::string> arguments);

  // Runs the probe undisturbed and returns its calls in order, from the beginning of its work to its end.
  std::vector<SystemCall> calls() const;

  // Runs the probe and stops it with SIGKILL at this call, which does not happen any more.
  Completed kill_at(const SystemCall& call) const;
  // Runs the probe with an error ("ENOSPC") in place of this call; with `from_then_on` also in place of all later ones.
  Completed fail_at(const SystemCall& call, const std::string& error, bool from_then_on) const;

 private:
  Completed run(const std::vector<std::string>& options) const;

  std::vector<std::string> arguments_;
};

// Runs the probe without strace.
Completed run_probe(const std::vector<std::string>& arguments);

}  // namespace arbalest::tests
