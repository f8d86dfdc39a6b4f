// Runs the program under test as a user does.
#pragma once

#include <cstdlib>
#include <string>
#include <vector>

#include "tests/support/source_directory.h"
#include "tests/support/subprocess.h"
#include "tests/support/temporary_directory.h"

namespace arbalest::tests {

// Runs the program in an empty directory, with a small environment.
class Program {
 public:
  std::filesystem::path directory() const { return directory_.path(); }
  std::filesystem::path operator/(const std::string& name) const { return directory_ / name; }

  // Path of one of the repository's own job files.
  static std::string config(const std::string& name) {
    return tests::source_directory() + "/configs/" + name + ".txtpb";
  }

  void set_environment(const std::string& assignment) { environment_.push_back(assignment); }

  const std::vector<std::string>& environment() const { return environment_; }

  Subprocess start(std::vector<std::string> arguments) const {
    arguments.insert(arguments.begin(), ARBALEST_PROGRAM);
    return {arguments, environment_, directory_.path()};
  }
  Completed run(const std::vector<std::string>& arguments) const { return start(arguments).wait(); }

 private:
  // A sanitized program gets the sanitizer options of its tests.
  static std::vector<std::string> small_environment() {
    std::vector<std::string> environment{"PATH=/usr/bin:/bin"};
    const char* options = std::getenv("TSAN_OPTIONS");
    if (options != nullptr) environment.push_back(std::string("TSAN_OPTIONS=") + options);
    return environment;
  }

  TemporaryDirectory directory_;
  std::vector<std::string> environment_ = small_environment();
};

}  // namespace arbalest::tests
