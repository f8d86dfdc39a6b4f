// Binds threads to cores.
#pragma once

#include <vector>

namespace arbalest::engine::host {

// Binds the calling thread to `cores`; does nothing for an empty list. Throws kDevice.
void pin_this_thread(const std::vector<int>& cores);

}  // namespace arbalest::engine::host
