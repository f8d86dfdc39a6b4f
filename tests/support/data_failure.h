// Returns the error message of a reader that must reject its data.
#pragma once

#include <string>

#include "engine/base/error.h"
#include "tests/support/catch.h"

namespace arbalest::tests {

template <typename Action>
std::string data_failure(const Action& action) {
  try {
    action();
  } catch (const engine::Error& error) {
    CHECK(error.kind() == engine::ErrorKind::kData);
    return error.what();
  }
  FAIL("the data was accepted");
  return "";
}

}  // namespace arbalest::tests
