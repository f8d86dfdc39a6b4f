// Prints on stderr when a test case begins and how it ends. bench/gpu.sh reads these lines. It repeats a test case
// alone if it failed or if the process ended in it.
#define CATCH_CONFIG_EXTERNAL_INTERFACES
#include <cstdio>
#include <string>

#include "tests/support/catch.h"

namespace {

class CaseListener final : public Catch::EventListenerBase {
 public:
  using Catch::EventListenerBase::EventListenerBase;

  void testCaseStarting(const Catch::TestCaseInfo& info) override { tell("begins", info.name); }
  void testCaseEnded(const Catch::TestCaseStats& stats) override {
    tell(stats.totals.assertions.failed == 0 ? "passed" : "failed", name_of(stats.testInfo));
  }

 private:
  // Catch2 2 has the case here, Catch2 3 a pointer to it.
  static const std::string& name_of(const Catch::TestCaseInfo& info) { return info.name; }
  static const std::string& name_of(const Catch::TestCaseInfo* info) { return info->name; }
  static void tell(const char* what, const std::string& name) {
    std::fprintf(stderr, "case %s: %s\n", what, name.c_str());
  }
};

CATCH_REGISTER_LISTENER(CaseListener)

}  // namespace
