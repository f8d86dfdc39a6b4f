#include "tests/jobs/traced_probe.h"

#include <map>
#include <sstream>
#include <utility>

#include "tests/support/skip.h"
#include "tests/support/temporary_directory.h"

namespace arbalest::tests {

namespace {

// Leaks cannot be looked for in a traced process.
const std::vector<std::string> kEnvironment = {"ASAN_OPTIONS=detect_leaks=0", "PATH=/usr/bin:/bin"};

Completed run_program(const std::vector<std::string>& arguments) {
  return Subprocess(arguments, kEnvironment, "/").wait();
}

}  // namespace

Completed run_probe(const std::vector<std::string>& arguments) {
  std::vector<std::string> all{ARBALEST_CHECKPOINT_PROBE};
  all.insert(all.end(), arguments.begin(), arguments.end());
  return run_program(all);
}

TracedProbe::TracedProbe(std::vector<std::string> arguments) : arguments_(std::move(arguments)) {
  const Completed attempt = run_program({"/usr/bin/env", "strace", "-o", "/dev/null", "true"});
  if (attempt.exit_code != 0) skip_test("strace cannot run here: " + attempt.err);
}

Completed TracedProbe::run(const std::vector<std::string>& options) const {
  std::vector<std::string> all{"/usr/bin/env", "strace"};
  all.insert(all.end(), options.begin(), options.end());
  all.emplace_back(ARBALEST_CHECKPOINT_PROBE);
  all.insert(all.end(), arguments_.begin(), arguments_.end());
  return run_program(all);
}

std::vector<SystemCall> TracedProbe::calls() const {
  const TemporaryDirectory directory;
  const Completed done = run({"-o", directory / "trace"});
  if (done.exit_code != 0) throw std::runtime_error("the probe fails undisturbed: " + done.err);
  std::map<std::string, int> counts;
  std::vector<SystemCall> found;
  bool begun = false;
  std::istringstream trace(read_text(directory / "trace"));
  for (std::string line; std::getline(trace, line);) {
    const std::string name = line.substr(0, line.find('('));
    const int when = ++counts[name];
    if (begun && line.find('(') != std::string::npos) found.push_back({name, when});
    begun = begun || line.find("\"/begin\"") != std::string::npos;
  }
  return found;
}

Completed TracedProbe::kill_at(const SystemCall& call) const {
  const std::string when = ":when=" + std::to_string(call.when);
  return run({"-o", "/dev/null", "-e", "trace=" + call.name, "-e", "inject=" + call.name + ":signal=KILL" + when});
}

Completed TracedProbe::fail_at(const SystemCall& call, const std::string& error, bool from_then_on) const {
  const std::string when = ":when=" + std::to_string(call.when) + (from_then_on ? "+" : "");
  return run({"-o", "/dev/null", "-e", "trace=" + call.name, "-e", "inject=" + call.name + ":error=" + error + when});
}

}  // namespace arbalest::tests
