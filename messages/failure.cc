#include "messages/failure.h"

#include <cerrno>
#include <new>
#include <system_error>

namespace arbalest::jobs {

using engine::Error;
using engine::ErrorKind;

ErrorKind kind_of_errno(int error) {
  const bool is_full = error == ENOMEM || error == ENOSPC || error == EDQUOT || error == EFBIG;
  return is_full ? ErrorKind::kOutOfMemory : ErrorKind::kInternal;
}

Error as_error(const std::exception& error) {
  if (const auto* known = dynamic_cast<const Error*>(&error)) return *known;
  if (dynamic_cast<const std::bad_alloc*>(&error) != nullptr) {
    return {ErrorKind::kOutOfMemory, "out of memory; use fewer learners, smaller mini-batches or a smaller model"};
  }
  if (const auto* system = dynamic_cast<const std::system_error*>(&error)) {
    return {
        kind_of_errno(system->code().value()),
        fmt::format("the operating system reports: {}; 'ulimit -a' shows the limits of this process", system->what())};
  }
  return {ErrorKind::kInternal, fmt::format("internal error: {}; please report this", error.what())};
}

bool is_shortage(const std::exception& error) {
  if (const auto* system = dynamic_cast<const std::system_error*>(&error)) {
    if (system->code() == std::errc::resource_unavailable_try_again) return true;
  }
  return as_error(error).kind() == ErrorKind::kOutOfMemory;
}

}  // namespace arbalest::jobs
