#include "arbalest/version.h"

namespace arbalest {

const char* version() noexcept { return ARBALEST_VERSION; }

}  // namespace arbalest
