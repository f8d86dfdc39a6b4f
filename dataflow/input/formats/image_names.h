// Tells images from other files by their names.
#pragma once

#include <cstdint>
#include <filesystem>
#include <map>
#include <string>

namespace arbalest::dataflow {

// For messages.
inline constexpr const char* kImageExtensions = ".jpg, .jpeg, .png, .webp";

// Whether the name has one of these extensions, in any case.
bool has_image_extension(const std::filesystem::path& path);

// Counts entries of folders that are left out, by their extensions.
class LeftOutEntries {
 public:
  void add(const std::filesystem::path& path);

  std::int64_t count() const noexcept { return count_; }
  // The first that was added.
  const std::filesystem::path& first() const noexcept { return first_; }
  // The commonest extensions first: "3 .heic, 1 .txt, 1 folder, 1 hidden".
  std::string kinds() const;

 private:
  std::map<std::string, std::int64_t> kinds_;
  std::int64_t count_ = 0;
  std::filesystem::path first_;
};

}  // namespace arbalest::dataflow
