// Ends a test that cannot run on this machine. ctest reports it as skipped, never as passed.
#pragma once

#include <cstdio>
#include <cstdlib>
#include <string>

namespace arbalest::tests {

// ctest runs each test case in a separate process (catch_discover_tests), with SKIP_RETURN_CODE 4.
[[noreturn]] inline void skip_test(const std::string& reason) {
  std::printf("skipped: %s\n", reason.c_str());
  std::exit(4);
}

}  // namespace arbalest::tests
