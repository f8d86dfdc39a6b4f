// What a failure that comes from elsewhere means to a user: its kind decides the exit code.
#pragma once

#include <exception>

#include "engine/error.h"

namespace arbalest::jobs {

// Of an errno: kOutOfMemory if memory or disk space has run out (a limit on either counts), else kInternal.
engine::ErrorKind kind_of_errno(int error);

// That there is no memory, or no thread, left to be had: fewer learners may do.
bool is_shortage(const std::exception& error);

// An engine::Error as it is; anything else as one, with a message that says what to do.
engine::Error as_error(const std::exception& error);

}  // namespace arbalest::jobs
