// The exception type of Arbalest: what failed, where, and the kind of failure.
#pragma once

#include <stdexcept>
#include <string>

#include <fmt/format.h>

namespace arbalest::engine {

// Each kind maps to one exit code of the program (cli/exit_codes.h).
enum class ErrorKind {
  kInternal,     // a broken invariant: a bug in Arbalest
  kUsage,        // command line
  kInvalidJob,   // job file or a value in it
  kData,         // dataset missing or corrupt
  kCheckpoint,   // saved model or checkpoint unusable
  kOutOfMemory,  // memory or disk space; recoverable
  kDiverged,     // non-finite values in training
  kPeer,         // another device or process failed
  kDevice,       // the device or its driver fails; not recoverable
};

class Error : public std::runtime_error {
 public:
  Error(ErrorKind kind, const std::string& what) : std::runtime_error(what), kind_(kind) {}

  ErrorKind kind() const noexcept { return kind_; }

 private:
  ErrorKind kind_;
};

template <typename... Args>
[[noreturn]] void fail(ErrorKind kind, fmt::format_string<Args...> format, Args&&... args) {
  throw Error(kind, fmt::format(format, std::forward<Args>(args)...));
}

[[noreturn]] void fail_check(const char* condition, const char* file, int line);

}  // namespace arbalest::engine

// The name without its folders: the same text in every checkout, so a compiler cache serves them all.
#ifdef __FILE_NAME__
#define ARBALEST_FILE __FILE_NAME__
#else
#define ARBALEST_FILE __FILE__
#endif
// Checks an internal invariant: a failure is a bug, never a user's mistake. The argument is evaluated once.
#define ARBALEST_CHECK(condition)                      \
  (static_cast<bool>(condition) ? static_cast<void>(0) \
                                : ::arbalest::engine::fail_check(#condition, ARBALEST_FILE, __LINE__))
