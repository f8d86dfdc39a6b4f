#include "tests/cuda/async_training.h"

namespace arbalest::tests {

TEST_CASE("learners of two GPUs push to a server on the first one", "[training][async]") {
  check_async_training({1, 2});
}

}  // namespace arbalest::tests
