// How many unreadable examples a fraction allows.
#include "dataflow/input/skip_limit.h"

#include "tests/support/catch.h"

namespace arbalest::dataflow {

TEST_CASE("a fraction of the examples may be left out, and at least one", "[input]") {
  CHECK(SkipLimit{0.01}.of(1000) == 10);
  CHECK(SkipLimit{0.01}.of(1099) == 10);
  CHECK(SkipLimit{0.01}.of(99) == 1);
  CHECK(SkipLimit{1.0}.of(50'000) == 50'000);
  // In double precision these products are below the whole number.
  CHECK(SkipLimit{0.29}.of(100) == 29);
  CHECK(SkipLimit{0.57}.of(100) == 57);
}

}  // namespace arbalest::dataflow
