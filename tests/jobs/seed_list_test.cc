#include "study/seed_list.h"

#include "engine/base/error.h"
#include "tests/support/catch.h"

namespace arbalest::jobs {

TEST_CASE("seeds are ranges and single numbers, in the given order") {
  using Seeds = std::vector<std::uint64_t>;
  CHECK(parse_seeds("7") == Seeds{7});
  CHECK(parse_seeds("2..4") == Seeds{2, 3, 4});
  CHECK(parse_seeds("9,1..2,5") == Seeds{9, 1, 2, 5});
  CHECK(parse_seeds("18446744073709551615") == Seeds{18446744073709551615U});
}

TEST_CASE("wrong lists of seeds are refused with a reason") {
  const std::pair<const char*, const char*> wrong[] = {{"", "--seeds is empty"},
                                                       {"a", "'a' is no seed"},
                                                       {"1,", "'' is no seed"},
                                                       {"1..", "'' is no seed"},
                                                       {"-1", "'-1' is no seed"},
                                                       {"3..1", "3..1 is empty"},
                                                       {"010", "010 has a leading zero"},
                                                       {"1..010", "010 has a leading zero"},
                                                       {"1..3,2", "2 is given twice"},
                                                       {"1..1001", "more than 1000 seeds"},
                                                       {"18446744073709551616", "is no seed"}};
  for (const auto& [text, reason] : wrong) CHECK_THROWS_WITH(parse_seeds(text), ContainsSubstring(reason));
}

}  // namespace arbalest::jobs
