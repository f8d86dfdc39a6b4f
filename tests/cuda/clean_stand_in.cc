// Every run of a test case begins with a new stand-in. The run fails if it used CUDA's libraries wrongly or leaked a
// resource. If the test case resets the stand-in, the time before the reset is checked too.
#define CATCH_CONFIG_EXTERNAL_INTERFACES
#include "tests/cuda_stand_in/stand_in.h"
#include "tests/support/catch.h"

namespace {

using namespace arbalest::tests;

class CleanStandIn final : public Catch::EventListenerBase {
 public:
  using Catch::EventListenerBase::EventListenerBase;

  void sectionStarting(const Catch::SectionInfo&) override {
    if (depth_++ == 0) cuda_stand_in::reset();
  }

  // The outermost section is the test case itself, and failures here still count.
  void sectionEnded(const Catch::SectionStats&) override {
    if (--depth_ > 0) return;
    for (const std::string& violation : cuda_stand_in::violations()) FAIL_CHECK(violation);
    for (const std::string& leak : cuda_stand_in::leaks()) FAIL_CHECK(leak);
  }

 private:
  int depth_ = 0;
};

CATCH_REGISTER_LISTENER(CleanStandIn)

}  // namespace
