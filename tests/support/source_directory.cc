#include "tests/support/source_directory.h"

namespace arbalest::tests {

std::string source_directory() { return ARBALEST_SOURCE_DIR; }

}  // namespace arbalest::tests
