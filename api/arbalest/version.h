// The version of the library.
#pragma once

#include "arbalest/api.h"

namespace arbalest {

// Returns the version of the library that is loaded: "0.1.0".
ARBALEST_API const char* version() noexcept;

}  // namespace arbalest
