// The thread counts with which operators are tested.
#pragma once

#include <vector>

#include "tests/support/sanitized.h"

namespace arbalest::tests {

// One thread and several; under a sanitizer, which is slow, several only.
inline std::vector<int> thread_counts() { return kSanitized ? std::vector{3} : std::vector{1, 3}; }

}  // namespace arbalest::tests
