// The exception that all functions of the library throw.
#pragma once

#include <stdexcept>
#include <string>

#include "arbalest/api.h"

namespace arbalest {

// The value of a kind is the exit code of the program `arbalest` for the same failure.
enum class ErrorKind {
  kInternal = 1,     // a bug in Arbalest
  kUsage = 2,        // a wrong argument, such as a setting or a directory
  kInvalidJob = 3,   // the job is wrong; the message names file, line and column of every mistake
  kData = 4,         // a dataset is missing or corrupt
  kCheckpoint = 5,   // a saved model or checkpoint cannot be used
  kOutOfMemory = 6,  // memory or disk space has run out
  kDiverged = 7,     // numbers in training are not finite
  kPeer = 8,         // another device has failed
  kDevice = 10       // a device or its driver fails
};

class ARBALEST_API Error : public std::runtime_error {
 public:
  Error(ErrorKind kind, const std::string& message);
  Error(const Error&) = default;
  Error& operator=(const Error&) = default;
  ~Error() override;

  ErrorKind kind() const noexcept { return kind_; }
  int exit_code() const noexcept { return static_cast<int>(kind_); }

 private:
  ErrorKind kind_;
};

}  // namespace arbalest
