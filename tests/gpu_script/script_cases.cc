// Test cases with different outcomes that bench/gpu.sh must distinguish. $ARBALEST_SCRIPT_FAULT names the fault.
#include <cstdlib>
#include <string_view>

#include "tests/cuda/gpus.h"
#include "tests/support/catch.h"

namespace arbalest::tests {
namespace {

bool fault(std::string_view name) {
  const char* wanted = std::getenv("ARBALEST_SCRIPT_FAULT");
  return wanted != nullptr && name == wanted;
}

int cases_before = 0;  // in this process

}  // namespace

TEST_CASE("script: counts, with a comma [and brackets]") {
  ++cases_before;
  CHECK_FALSE(fault("failure"));
}

TEST_CASE("script: needs a fresh process") { CHECK_FALSE((fault("leftovers") && cases_before > 0)); }

TEST_CASE("script: ends the process") {
  if (fault("death")) std::_Exit(10);
  CHECK(cases_before >= 0);
}

TEST_CASE("script: comes last") { CHECK(true); }

TEST_CASE("script: first losses", "[training][first_losses]") { CHECK(true); }
TEST_CASE("script: repeats", "[training][repeatability]") { CHECK(true); }
TEST_CASE("script: trains", "[training][teams]") { CHECK(true); }

TEST_CASE("script: needs two GPUs", "[training][several_gpus]") {
  use_gpus(2);
  FAIL("the stand-in has one GPU");
}

}  // namespace arbalest::tests
