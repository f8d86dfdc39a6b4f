// Translates exceptions of oneDNN, the standard library and the system into Error. Code that calls these on a host
// thread runs under translate_errors; code on a stream is translated there.
#pragma once

namespace arbalest::engine::cpu {

// For a catch block: throws the handled exception as an Error. An Error is rethrown unchanged; std::bad_alloc and
// oneDNN's out_of_memory become kOutOfMemory, everything else kDevice.
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
