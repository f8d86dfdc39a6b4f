#include "tests/support/test_device.h"

namespace arbalest::tests {

void use_test_device() {}  // a CPU is always available

}  // namespace arbalest::tests
