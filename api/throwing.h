// Turns the exceptions of our own code into those of the library.
#pragma once

#include <exception>
#include <utility>

#include "arbalest/error.h"

namespace arbalest {

Error public_error(const std::exception& error);

// Returns what `body` returns, and throws nothing but arbalest::Error.
template <typename Body>
auto throwing_public_errors(Body&& body) -> decltype(body()) {
  try {
    return std::forward<Body>(body)();
  } catch (const Error&) {
    throw;
  } catch (const std::exception& error) {
    throw public_error(error);
  }
}

}  // namespace arbalest
