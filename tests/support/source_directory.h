// The root of the source tree that these tests were built from.
#pragma once

#include <string>

namespace arbalest::tests {

std::string source_directory();

}  // namespace arbalest::tests
