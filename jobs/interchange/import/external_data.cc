#include "jobs/interchange/import/external_data.h"

#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <charconv>
#include <cstring>
#include <span>
#include <utility>

#include "engine/error.h"
#include "jobs/export/regular_file.h"

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

class OpenFolder {
 public:
  explicit OpenFolder(int descriptor) : descriptor_(descriptor) {}
  OpenFolder(OpenFolder&& other) noexcept : descriptor_(std::exchange(other.descriptor_, -1)) {}
  OpenFolder& operator=(OpenFolder&& other) noexcept {
    std::swap(descriptor_, other.descriptor_);
    return *this;
  }
  ~OpenFolder() {
    if (descriptor_ >= 0) close(descriptor_);
  }

  int descriptor() const noexcept { return descriptor_; }

  // The folder `name` in this one. A symbolic link is refused.
  OpenFolder open(const char* name) const {
    OpenFolder inner(openat(descriptor_, name, O_PATH | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC));
    if (inner.descriptor_ >= 0) return inner;
    const int error = errno;
    struct stat status {};
    const bool is_link = fstatat(descriptor_, name, &status, AT_SYMLINK_NOFOLLOW) == 0 && S_ISLNK(status.st_mode);
    throw FileError(is_link ? ELOOP : error, std::strerror(error));
  }

 private:
  int descriptor_ = -1;
};

// Opens `path` below `directory`, one folder after the other, so that no symbolic link is followed. openat2 would do it
// in one call, but some containers refuse that call. Throws FileError.
RegularFile open_below(int directory, const std::filesystem::path& path) {
  if (path.is_absolute() || std::ranges::find(path, "..") != path.end()) {
    throw FileError(EXDEV, "it lies outside the folder of the model");
  }
  OpenFolder folder(fcntl(directory, F_DUPFD_CLOEXEC, 0));
  if (folder.descriptor() < 0) throw FileError(errno, std::strerror(errno));
  for (const std::filesystem::path& name : path.parent_path()) folder = folder.open(name.c_str());
  return RegularFile(folder.descriptor(), path.filename().c_str());
}

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
  try {
    RegularFile file = open_below(directory_, place.location);
    // A hard link may be a file from elsewhere under another name.
    if (file.names() != 1) throw FileError(0, "it has other names (hard links)");
    if (place.offset > file.size() || bytes > file.size() - place.offset) {
      throw FileError(
          0, fmt::format("it has {} bytes, but the tensor needs {} from byte {} on", file.size(), bytes, place.offset));
    }
    std::string data(bytes, '\0');
    file.read_at(place.offset, std::as_writable_bytes(std::span(data)));
    tensor.set_raw_data(std::move(data));
  } catch (const FileError& error) {
    const bool is_link = error.error() == ELOOP;
    fail_tensor(tensor,
                fmt::format("'{}': {}", place.location, is_link ? "its path has a symbolic link" : error.what()));
  }
  tensor.clear_external_data();
  tensor.clear_data_location();
}

}  // namespace arbalest::jobs
