#include "autotuner/configuration.h"

#include <stdexcept>

#include "tests/support/catch.h"

namespace arbalest::autotuner {

using Space = std::vector<Configuration>;

TEST_CASE("configuration: candidates are the numbers of learners that leave the fewest cores idle") {
  CHECK(counts_of_cores({1, 4}, 4) == Space{{1, 4}, {2, 2}, {4, 1}});
  CHECK(counts_of_cores({1, 6}, 6) == Space{{1, 6}, {2, 3}, {3, 2}, {6, 1}});
  CHECK(counts_of_cores({1, 12}, 12) == Space{{1, 12}, {2, 6}, {3, 4}, {4, 3}, {6, 2}, {12, 1}});
  CHECK(counts_of_cores({1, 7}, 7) == Space{{1, 7}, {2, 3}, {3, 2}, {7, 1}});
  CHECK(counts_of_cores({1, 1}, 1) == Space{{1, 1}});
}

TEST_CASE("configuration: above the cores candidates are multiples of them, and bounds are kept") {
  CHECK(counts_of_cores({2, 11}, 4) == Space{{2, 2}, {4, 1}, {8, 1}});
  CHECK(counts_of_cores({1, 3}, 1) == Space{{1, 1}, {2, 1}, {3, 1}});
  // If no suitable number is within the bounds, all numbers are candidates.
  CHECK(counts_of_cores({7, 9}, 12) == Space{{7, 1}, {8, 1}, {9, 1}});
  CHECK(counts_of_cores({5, 5}, 12) == Space{{5, 2}});
  CHECK(all_counts({3, 5}) == Space{{3, 1}, {4, 1}, {5, 1}});
}

TEST_CASE("configuration: up to the number of cores, each candidate has as many learners as fit its threads") {
  for (int cores = 1; cores <= 64; ++cores) {
    for (const Configuration& count : counts_of_cores({1, cores}, cores)) {
      CHECK(count.learners * count.threads <= cores);
      CHECK((count.learners + 1) * count.threads > cores);  // one more learner would not fit
    }
  }
}

TEST_CASE("configuration: unlike devices have the common candidates of all") {
  const std::vector<Space> spaces = {counts_of_cores({1, 4}, 1), counts_of_cores({1, 4}, 2),
                                     counts_of_cores({2, 4}, 4)};
  REQUIRE(spaces[0].size() == 4);
  CHECK(common_counts(spaces) == Space{{2, 1}, {4, 1}});
  CHECK(common_counts({{{{1, 2}, {3, 1}}, {{2, 1}}}}).empty());
}

TEST_CASE("configuration: bounds that exclude each other are refused") {
  CHECK_THROWS_AS(all_counts({4, 3}), std::invalid_argument);
  CHECK_THROWS_AS(all_counts({0, 3}), std::invalid_argument);
  CHECK_THROWS_AS(counts_of_cores({4, 3}, 4), std::invalid_argument);
  CHECK_THROWS_AS(counts_of_cores({1, 3}, 0), std::invalid_argument);
}

TEST_CASE("configuration: description in words") {
  CHECK(describe(Configuration{1, 1}) == "1 learner");
  CHECK(describe(Configuration{4, 1}) == "4 learners");
  CHECK(describe(Configuration{2, 3}) == "2 learners of 3 threads");
}

}  // namespace arbalest::autotuner
