// Classifies failures from outside the engine; the kind decides the exit code.
#pragma once

#include <exception>

#include "engine/base/error.h"

namespace arbalest::jobs {

// The kind for an errno: kOutOfMemory if memory or disk space has run out (or a limit on them), else kInternal.
engine::ErrorKind kind_of_errno(int error);

// Whether no memory or no thread is left; fewer learners may then work.
bool is_shortage(const std::exception& error);

// Returns an engine::Error unchanged, and any other exception as one, with a message that says what to do.
engine::Error as_error(const std::exception& error);

}  // namespace arbalest::jobs
