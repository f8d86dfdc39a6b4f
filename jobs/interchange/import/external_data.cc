#include "jobs/interchange/import/external_data.h"

#include <fcntl.h>
#include <linux/openat2.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <cerrno>
#include <charconv>
#include <cstring>
#include <string_view>
#include <utility>

#include "engine/error.h"

namespace arbalest::jobs {

using engine::ErrorKind;

namespace {

[[noreturn]] void fail_tensor(const onnx::Tensor& tensor, const std::string& problem) {
  engine::fail(ErrorKind::kCheckpoint, "tensor '{}': its external data cannot be used: {}", tensor.name(), problem);
}

struct Place {
  std::string location;
  std::uint64_t offset = 0;
};

std::uint64_t number_of(const onnx::Tensor& tensor, const onnx::Entry& entry) {
  const std::string& text = entry.value();
  std::uint64_t number = 0;
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), number);
  if (error != std::errc() || end != text.data() + text.size()) {
    fail_tensor(tensor, fmt::format("'{}' is '{}', not a number of bytes", entry.key(), text));
  }
  return number;
}

// `bytes`: what the shape needs.
Place place_of(const onnx::Tensor& tensor, std::uint64_t bytes) {
  Place place;
  for (const onnx::Entry& entry : tensor.external_data()) {
    if (entry.key() == "location") place.location = entry.value();
    if (entry.key() == "offset") place.offset = number_of(tensor, entry);
    if (entry.key() != "length") continue;
    const std::uint64_t length = number_of(tensor, entry);
    if (length != bytes) {
      fail_tensor(tensor, fmt::format("it has {} bytes, but the shape needs {}", length, bytes));
    }
  }
  const bool has_nul = place.location.find('\0') != std::string::npos;
  if (place.location.empty() || has_nul) fail_tensor(tensor, "it names no file");
  return place;
}

class OpenFile {
 public:
  // `name`: below `directory`.
  OpenFile(int directory, const onnx::Tensor& tensor, const std::string& name) {
    open_how how{};
    how.flags = O_RDONLY | O_CLOEXEC | O_NONBLOCK;  // opening a pipe would wait for its writer
    how.resolve = RESOLVE_BENEATH | RESOLVE_NO_SYMLINKS | RESOLVE_NO_MAGICLINKS;
    file_ = static_cast<int>(syscall(SYS_openat2, directory, name.c_str(), &how, sizeof how));
    if (file_ >= 0) return;
    const char* reason = errno == EXDEV   ? "it lies outside the folder of the model"
                         : errno == ELOOP ? "its path has a symbolic link"
                                          : std::strerror(errno);
    fail_tensor(tensor, fmt::format("'{}': {}", name, reason));
  }
  ~OpenFile() { close(file_); }
  OpenFile(const OpenFile&) = delete;
  OpenFile& operator=(const OpenFile&) = delete;

  int get() const noexcept { return file_; }

 private:
  int file_ = -1;
};

}  // namespace

ExternalData::ExternalData(const std::filesystem::path& directory)
    : directory_(open(directory.empty() ? "." : directory.c_str(), O_RDONLY | O_DIRECTORY | O_CLOEXEC)) {
  if (directory_ >= 0) return;
  engine::fail(ErrorKind::kCheckpoint, "the folder '{}' cannot be opened: {}", directory.string(),
               std::strerror(errno));
}

ExternalData::~ExternalData() { close(directory_); }

void ExternalData::load(onnx::Tensor& tensor, std::uint64_t bytes) const {
  const Place place = place_of(tensor, bytes);
  const OpenFile file(directory_, tensor, place.location);
  struct stat status {};
  if (fstat(file.get(), &status) != 0) fail_tensor(tensor, std::strerror(errno));
  if (!S_ISREG(status.st_mode)) fail_tensor(tensor, fmt::format("'{}' is not a regular file", place.location));
  // A hard link may be a file from elsewhere under another name.
  if (status.st_nlink != 1) fail_tensor(tensor, fmt::format("'{}' has other names (hard links)", place.location));
  const auto size = static_cast<std::uint64_t>(status.st_size);
  if (place.offset > size || bytes > size - place.offset) {
    fail_tensor(tensor, fmt::format("'{}' has {} bytes, but it needs {} from byte {} on", place.location, size, bytes,
                                    place.offset));
  }
  std::string data(bytes, '\0');
  for (std::size_t done = 0; done < data.size();) {
    const ssize_t count =
        pread(file.get(), data.data() + done, data.size() - done, static_cast<off_t>(place.offset + done));
    if (count < 0 && errno == EINTR) continue;
    if (count <= 0) fail_tensor(tensor, count < 0 ? std::strerror(errno) : "it became shorter while it was read");
    done += static_cast<std::size_t>(count);
  }
  tensor.set_raw_data(std::move(data));
  tensor.clear_external_data();
  tensor.clear_data_location();
}

}  // namespace arbalest::jobs
