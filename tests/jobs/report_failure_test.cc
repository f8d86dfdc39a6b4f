// Translation of unexpected exceptions.
#include "messages/failure.h"

#include <cerrno>
#include <filesystem>
#include <new>
#include <stdexcept>
#include <system_error>

#include "tests/support/catch.h"

namespace arbalest::jobs {
namespace {

using engine::Error;
using engine::ErrorKind;

void check(const std::exception& error, ErrorKind kind, const std::string& words) {
  const Error known = as_error(error);
  CHECK(known.kind() == kind);
  CHECK_THAT(known.what(), ContainsSubstring(words));
}

std::system_error system_error(int code) { return {code, std::generic_category(), "thread"}; }

}  // namespace

TEST_CASE("failure: engine::Error keeps its kind and message") {
  check(Error(ErrorKind::kData, "the file is gone"), ErrorKind::kData, "the file is gone");
}

TEST_CASE("failure: out of memory and full disks have their own kinds") {
  check(std::bad_alloc(), ErrorKind::kOutOfMemory, "out of memory; use fewer learners");
  check(std::bad_array_new_length(), ErrorKind::kOutOfMemory, "out of memory");
  for (const int code : {ENOMEM, ENOSPC, EDQUOT, EFBIG}) {
    INFO(code);
    check(system_error(code), ErrorKind::kOutOfMemory, "the operating system reports: thread: ");
  }
  check(std::filesystem::filesystem_error("rename", std::make_error_code(std::errc::no_space_on_device)),
        ErrorKind::kOutOfMemory, "No space left on device");
  check(system_error(EAGAIN), ErrorKind::kInternal, "Resource temporarily unavailable; 'ulimit -a' shows");
  check(system_error(EIO), ErrorKind::kInternal, "Input/output error");
}

TEST_CASE("failure: anything else is a bug, and says so") {
  check(std::logic_error("odd"), ErrorKind::kInternal, "internal error: odd; please report this");
}

}  // namespace arbalest::jobs
