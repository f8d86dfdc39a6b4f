#include "jobs/fetch/cifar100_files.h"

#include <algorithm>
#include <array>
#include <cstdint>
#include <fstream>
#include <set>

#include <fmt/format.h>

namespace arbalest::jobs {

namespace {

constexpr int kClasses = 100;
constexpr int kSuperclasses = 20;
constexpr int kClassesOfOne = kClasses / kSuperclasses;

}  // namespace

std::string problem_of_cifar100_records(const std::filesystem::path& path, int per_class) {
  std::ifstream file(path, std::ios::binary);
  std::array<int, kClasses> images{};
  std::array<int, kClasses> superclass_of{};
  superclass_of.fill(-1);
  std::array<int, kSuperclasses> classes{};
  std::array<char, kCifar100RecordBytes> record{};
  std::int64_t number = 0;
  for (; file.read(record.data(), record.size()); ++number) {
    const auto superclass = static_cast<std::uint8_t>(record[0]);
    const auto label = static_cast<std::uint8_t>(record[1]);
    if (superclass >= kSuperclasses || label >= kClasses) {
      return fmt::format("record {} has the superclass {} and the class {}", number, superclass, label);
    }
    int& known = superclass_of.at(label);
    if (known < 0) ++classes.at(superclass);
    if (known >= 0 && known != superclass) {
      return fmt::format("record {} puts the class {} into the superclass {}, and earlier ones into {}", number, label,
                         superclass, known);
    }
    known = superclass;
    ++images.at(label);
  }
  if (file.gcount() != 0 || !file.eof()) return "it cannot be read as records to its end";
  for (int label = 0; label < kClasses; ++label) {
    const int count = images.at(static_cast<std::size_t>(label));
    if (count != per_class) return fmt::format("it has {} images of the class {}, and not {}", count, label, per_class);
  }
  const auto wrong = std::ranges::find_if(classes, [](int count) { return count != kClassesOfOne; });
  if (wrong == classes.end()) return "";
  return fmt::format("its superclass {} has {} classes, and not {}", wrong - classes.begin(), *wrong, kClassesOfOne);
}

std::string problem_of_class_names(const std::filesystem::path& path, int names) {
  std::ifstream file(path);
  std::set<std::string> found;
  for (std::string line; std::getline(file, line);) {
    if (line.empty()) {  // empty lines may stand at the end only
      while (std::getline(file, line)) {
        if (!line.empty()) return fmt::format("line {} is empty", found.size() + 1);
      }
      break;
    }
    if (!found.insert(line).second) return fmt::format("the name '{}' repeats", line);
  }
  if (!file.eof()) return "it cannot be read";
  if (std::ssize(found) == names) return "";
  return fmt::format("it has {} names, and not {}", found.size(), names);
}

}  // namespace arbalest::jobs
