// Skips the test cases of a program for real GPUs if there is no GPU, and prints the reason.
#define CATCH_CONFIG_EXTERNAL_INTERFACES
#include "engine/backends/cuda_devices.h"
#include "tests/support/catch.h"
#include "tests/support/skip.h"

namespace {

using namespace arbalest;

class SkipWithoutGpu final : public Catch::EventListenerBase {
 public:
  using Catch::EventListenerBase::EventListenerBase;

  void testCaseStarting(const Catch::TestCaseInfo& /*info*/) override {
    const std::string problem = engine::find_cuda_devices().problem;
    if (!problem.empty()) tests::skip_test(problem);
  }
};

CATCH_REGISTER_LISTENER(SkipWithoutGpu)

}  // namespace
