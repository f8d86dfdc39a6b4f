// Percentages for people.
#include <limits>

#include "messages/text.h"
#include "tests/support/catch.h"

namespace arbalest::jobs {

TEST_CASE("percentages are rounded, but never to a limit that the number is short of") {
  // Rounded as Python 3.11's format(100 * x, ".2f") does.
  CHECK(percent(13.0 / 15.0) == "86.67 %");
  CHECK(percent(2.0 / 3.0) == "66.67 %");
  CHECK(percent(0.98765) == "98.77 %");
  CHECK(percent(0.29) == "29.00 %");
  CHECK(percent(0.0) == "0.00 %");
  CHECK(percent(1.0) == "100.00 %");
  CHECK(percent(0.99995) == "99.995 %");
  CHECK(percent(0.99999) == "99.999 %");
  CHECK(percent(59'999.0 / 60'000.0) == "99.998 %");
  CHECK(percent(0.99, 0.99) == "99.00 %");
  CHECK(percent(0.989999, 0.99) == "98.9999 %");
  CHECK(percent(0.98994, 0.99) == "98.99 %");
  CHECK(percent(0.9900001, 0.99) == "99.00 %");
  CHECK(percent(0.98765, 0.98765) == "98.77 %");
  CHECK(percent(0.98764, 0.98765) == "98.76 %");
  CHECK(percent(0.98134, 0.98134) == "98.134 %");  // 98.13 would be short of the target
  CHECK(percent(std::numeric_limits<double>::quiet_NaN()) == "nan %");
  CHECK(target_percent(0.99) == "99.00 %");
  CHECK(target_percent(1.0) == "100.00 %");
  CHECK(target_percent(0.98765) == "98.765 %");
  CHECK(target_percent(0.29) == "29.00 %");
}

}  // namespace arbalest::jobs
