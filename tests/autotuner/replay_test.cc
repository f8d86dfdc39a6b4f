#include "autotuner/replay.h"

#include <stdexcept>

#include "tests/support/catch.h"

namespace arbalest::autotuner {

TEST_CASE("replay: every resize is due once, at its mini-batch") {
  const std::vector<Resize> schedule = {{0, {{2, 2}}}, {640, {{4, 1}}}, {700, {{2, 2}}}};
  Replay replay(schedule);
  CHECK(replay.next() == 0);
  CHECK(replay.due(0) == schedule[0]);
  CHECK_FALSE(replay.due(0));
  CHECK(replay.next() == 640);
  CHECK_FALSE(replay.due(639));
  CHECK(replay.due(640) == schedule[1]);
  CHECK_THROWS_AS(replay.due(701), std::logic_error);
  CHECK(replay.due(700) == schedule[2]);
  CHECK_FALSE(replay.next());
  CHECK_FALSE(replay.due(10'000));
}

TEST_CASE("replay: a schedule that cannot be one is refused") {
  CHECK_THROWS_AS(Replay({}), std::invalid_argument);
  CHECK_THROWS_AS(Replay(std::vector{Resize{8, {{2, 1}}}}), std::invalid_argument);
  CHECK_THROWS_AS(Replay({{0, {{2, 1}}}, {8, {{4, 1}}}, {8, {{2, 1}}}}), std::invalid_argument);
  CHECK_THROWS_AS(Replay(std::vector{Resize{0, {{0, 1}}}}), std::invalid_argument);
  CHECK_THROWS_AS(Replay(std::vector{Resize{0, {}}}), std::invalid_argument);
  CHECK_THROWS_AS(Replay({{0, {{2, 1}, {2, 1}}}, {8, {{4, 1}}}}), std::invalid_argument);
}

}  // namespace arbalest::autotuner
