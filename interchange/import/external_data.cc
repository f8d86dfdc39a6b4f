#include "interchange/import/external_data.h"

#include <fcntl.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <charconv>
#include <cstring>
#include <span>
#include <system_error>
#include <utility>
#include <vector>

#include "engine/base/error.h"
#include "messages/text_encoding.h"
#include "saved_model/regular_file.h"
#include "saved_model/sha256.h"

namespace arbalest::jobs {

using engine::ErrorKind;

namespace {

[[noreturn]] void fail_tensor(const onnx::Tensor& tensor, const std::string& problem) {
  engine::fail(ErrorKind::kCheckpoint, "tensor '{}': its external data cannot be used: {}", tensor.name(), problem);
}

struct Place {
  std::string location;
  std::uint64_t offset = 0;
  std::string checksum = {};  // "": the tensor names none
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
    if (entry.key() == "checksum") place.checksum = entry.value();
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
    throw FileError(errno, std::strerror(errno));
  }

 private:
  int descriptor_ = -1;
};

// Opens `path` below `directory`, one folder after the other, so that no symbolic link is followed. openat2 would do it
// in one call, but some containers refuse that call. Throws FileError.
RegularFile open_below(int directory, const std::filesystem::path& path) {
  OpenFolder folder(fcntl(directory, F_DUPFD_CLOEXEC, 0));
  if (folder.descriptor() < 0) throw FileError(errno, std::strerror(errno));
  for (const std::filesystem::path& name : path.parent_path()) folder = folder.open(name.c_str());
  return RegularFile(folder.descriptor(), path.filename().c_str());
}

// The path without symbolic links. Throws FileError.
std::filesystem::path resolved(const std::filesystem::path& path) {
  std::error_code error;
  std::filesystem::path result = std::filesystem::canonical(path, error);
  if (error) throw FileError(error.value(), error.message());
  return result;
}

// `path` as seen from `folder`; empty if it does not lie below. Both have no symbolic links.
std::filesystem::path below(const std::filesystem::path& folder, const std::filesystem::path& path) {
  std::filesystem::path inner = path.lexically_relative(folder);
  return inner.empty() || *inner.begin() == ".." ? std::filesystem::path() : inner;
}

int open_folder(const std::filesystem::path& path) {
  return open(path.c_str(), O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);
}

constexpr const char* kRemedy =
    "copy that file into the model's folder, or store the weights in the model: onnx.save(onnx.load(FILE), NEW_FILE)";

}  // namespace

ExternalData::ExternalData(const std::filesystem::path& model)
    : given_(model.has_parent_path() ? model.parent_path() : "."), model_(model) {}

RegularFile ExternalData::open_file(const std::string& location) const {
  const std::filesystem::path path(location);
  if (path.is_absolute() || std::ranges::find(path, "..") != path.end()) {
    throw FileError(EXDEV, fmt::format("it lies outside the folder of the model; {}", kRemedy));
  }
  const std::filesystem::path folder = resolved(given_);
  const std::filesystem::path beside = resolved(model_).parent_path();
  std::error_code ignored;  // of a path that cannot be followed: resolved() tells why
  const bool is_there = std::filesystem::exists(folder / path, ignored);
  const bool is_only_beside = !is_there && std::filesystem::exists(beside / path, ignored);
  const std::filesystem::path target = resolved((is_only_beside ? beside : folder) / path);
  // What is opened is the resolved path, without links: another link that is put in its place in the meantime is
  // refused.
  const bool is_beside = target.parent_path() == beside;
  const std::filesystem::path inner = is_beside ? target.filename() : below(folder, target);
  if (inner.empty()) {
    throw FileError(EXDEV, fmt::format("it is a symbolic link to '{}', which lies neither below the model's folder nor "
                                       "beside the file that the model's own name stands for; {}",
                                       target.string(), kRemedy));
  }
  const OpenFolder root(open_folder(is_beside ? beside : folder));
  if (root.descriptor() < 0) throw FileError(errno, std::strerror(errno));
  return open_below(root.descriptor(), inner);
}

// A file holds the data of many tensors, so it is read once for all of their checksums.
void ExternalData::check(RegularFile& file, const std::string& location, const std::string& checksum) {
  std::string lower = checksum;
  std::ranges::transform(lower, lower.begin(), [](char c) { return c >= 'A' && c <= 'F' ? char(c - 'A' + 'a') : c; });
  constexpr std::size_t kDigits = 40;
  if (lower.size() != kDigits || lower.find_first_not_of("0123456789abcdef") != std::string::npos) {
    throw FileError(0,
                    fmt::format("its checksum '{}' is no SHA-1 in hexadecimal digits", shortened(printable(checksum))));
  }
  constexpr std::uint64_t kMostBytes = std::uint64_t{1} << 38U;  // a sparse file may claim any size
  if (file.size() > kMostBytes)
    throw FileError(0, "it is too large to compare its checksum; store the weights in the model");
  auto found = checksums_.find(location);
  if (found == checksums_.end()) {
    Sha1 sha;
    std::vector<std::byte> piece(1U << 20U);
    for (std::uint64_t at = 0; at < file.size();) {
      const auto count = static_cast<std::size_t>(std::min<std::uint64_t>(piece.size(), file.size() - at));
      file.read_at(at, std::span(piece).first(count));
      sha.update(std::span(piece).first(count));
      at += count;
    }
    found = checksums_.emplace(location, sha.finish()).first;
  }
  if (found->second == lower) return;
  throw FileError(0, fmt::format("its SHA-1 is {}, and the model says {}: it is damaged, or belongs to another model; "
                                 "fetch both files again",
                                 found->second, lower));
}

void ExternalData::load(onnx::Tensor& tensor, std::uint64_t bytes) {
  const Place place = place_of(tensor, bytes);
  try {
    RegularFile file = open_file(place.location);
    if (place.offset > file.size() || bytes > file.size() - place.offset) {
      throw FileError(
          0, fmt::format("it has {} bytes, but the tensor needs {} from byte {} on", file.size(), bytes, place.offset));
    }
    if (!place.checksum.empty()) check(file, place.location, place.checksum);
    std::string data(bytes, '\0');
    file.read_at(place.offset, std::as_writable_bytes(std::span(data)));
    tensor.set_raw_data(std::move(data));
  } catch (const FileError& error) {
    fail_tensor(tensor, fmt::format("'{}': {}", place.location, error.what()));
  }
  tensor.clear_external_data();
  tensor.clear_data_location();
}

}  // namespace arbalest::jobs
