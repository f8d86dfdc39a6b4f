// The kinds of errors.
#pragma once

#include <functional>

#include "engine/base/error.h"
#include "tests/support/catch.h"

namespace arbalest::tests {

// Returns the kind of the error that `action` throws; it must throw one.
inline engine::ErrorKind kind_of_failure(const std::function<void()>& action) {
  try {
    action();
  } catch (const engine::Error& error) {
    return error.kind();
  }
  FAIL("no error");
  return engine::ErrorKind::kInternal;
}

}  // namespace arbalest::tests
