#include "dataflow/input/formats/image_names.h"

#include <algorithm>
#include <array>
#include <cctype>
#include <system_error>
#include <utility>
#include <vector>

#include <fmt/format.h>
#include <fmt/ranges.h>

namespace arbalest::dataflow {

namespace fs = std::filesystem;

namespace {

std::string lower_extension(const fs::path& path) {
  std::string extension = path.extension().string();
  std::ranges::transform(extension, extension.begin(), [](unsigned char c) { return std::tolower(c); });
  return extension;
}

std::string kind_of(const fs::path& path) {
  std::error_code unknown;  // an entry that is gone is no folder
  if (path.filename().string().starts_with('.')) return "hidden";
  if (fs::is_directory(path, unknown)) return "folder";
  std::string extension = lower_extension(path);
  return extension.size() > 1 ? extension : "without an extension";
}

}  // namespace

bool has_image_extension(const fs::path& path) {
  constexpr std::array kExtensions = {".jpg", ".jpeg", ".png", ".webp"};
  return std::ranges::find(kExtensions, lower_extension(path)) != kExtensions.end();
}

void LeftOutEntries::add(const fs::path& path) {
  if (count_++ == 0) first_ = path;
  ++kinds_[kind_of(path)];
}

std::string LeftOutEntries::kinds() const {
  constexpr std::size_t kMostNamed = 8;
  std::vector<std::pair<std::string, std::int64_t>> sorted(kinds_.begin(), kinds_.end());
  std::ranges::stable_sort(sorted, std::ranges::greater(), [](const auto& kind) { return kind.second; });
  std::vector<std::string> texts;
  for (const auto& [kind, count] : sorted) {
    if (texts.size() == kMostNamed) break;
    texts.push_back(fmt::format("{} {}{}", count, kind, kind == "folder" && count > 1 ? "s" : ""));
  }
  if (sorted.size() > kMostNamed) texts.emplace_back("...");
  return fmt::format("{}", fmt::join(texts, ", "));
}

}  // namespace arbalest::dataflow
