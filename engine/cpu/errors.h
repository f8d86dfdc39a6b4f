// The exceptions of oneDNN, the standard library and the system as Error: what calls them on a host thread runs under
// translate_errors; what runs on a stream is caught there.
#pragma once

namespace arbalest::engine::cpu {

// In a catch block: throws what is being handled. An Error stays as it is; std::bad_alloc and oneDNN's out_of_memory
// become kOutOfMemory, everything else kDevice.
[[noreturn]] void rethrow_as_error();

template <typename Body>
decltype(auto) translate_errors(const Body& body) {
  try {
    return body();
  } catch (...) {
    rethrow_as_error();
  }
}

}  // namespace arbalest::engine::cpu
