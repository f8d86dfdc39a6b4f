// The files that a reader reads from disk, in memory if there is such a directory.
#pragma once

#include <fcntl.h>
#include <unistd.h>

#include <cstdlib>
#include <filesystem>
#include <span>
#include <string>

#include "tests/support/temporary_directory.h"

namespace arbalest::fuzz {

class InputDirectory {
 public:
  const std::filesystem::path& path() const { return directory_.path(); }

  void write(const std::string& name, std::span<const std::uint8_t> bytes) const {
    const int file = open((path() / name).c_str(), O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, 0600);
    const bool is_written =
        file >= 0 && ::write(file, bytes.data(), bytes.size()) == static_cast<ssize_t>(bytes.size());
    if (!is_written) std::abort();
    close(file);
  }
  void write(const std::string& name, const std::string& bytes) const {
    write(name, std::span(reinterpret_cast<const std::uint8_t*>(bytes.data()), bytes.size()));
  }

 private:
  tests::TemporaryDirectory directory_{std::filesystem::is_directory("/dev/shm")
                                           ? std::filesystem::path("/dev/shm")
                                           : std::filesystem::temp_directory_path()};
};

}  // namespace arbalest::fuzz
