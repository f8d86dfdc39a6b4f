#include "engine/host/version.h"

#include <oneapi/tbb/version.h>

namespace arbalest::engine::host {

std::string onetbb_version() { return TBB_runtime_version(); }

}  // namespace arbalest::engine::host
