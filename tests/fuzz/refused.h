// A reader may accept hostile input, or throw an error of the right kind. All else is a finding.
#pragma once

#include <algorithm>
#include <cstdio>
#include <cstdlib>
#include <initializer_list>

#include "engine/base/error.h"

namespace arbalest::fuzz {

// Returns whether `read` threw. Ends the program on an error of another kind; libFuzzer reports other exceptions.
template <typename Read>
bool is_refused(std::initializer_list<engine::ErrorKind> kinds, Read read) {
  try {
    read();
    return false;
  } catch (const engine::Error& error) {
    if (std::ranges::find(kinds, error.kind()) != kinds.end()) return true;
    std::fprintf(stderr, "an error of another kind: %s\n", error.what());
    std::abort();
  }
}

}  // namespace arbalest::fuzz
