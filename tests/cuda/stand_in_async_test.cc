#include "tests/cuda/async_training.h"

namespace arbalest::tests {

TEST_CASE("learners of a GPU push to a server, for any order of its streams", "[training][async]") {
  check_async_training({3});
}

}  // namespace arbalest::tests
