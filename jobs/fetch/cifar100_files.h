// Checks the files in CIFAR-100's archive by what is known of them: no checksums are published.
#pragma once

#include <filesystem>
#include <string>

namespace arbalest::jobs {

inline constexpr int kCifar100RecordBytes = 3'074;  // the numbers of superclass and class, then 3 x 32 x 32 pixels

// Both return why the file is not the published one, or "" if it may be.

// `per_class`: the images that each of the 100 classes has in the file. The 20 superclasses have 5 classes each.
std::string problem_of_cifar100_records(const std::filesystem::path& path, int per_class);
// `names`: how many different names the file has, one a line.
std::string problem_of_class_names(const std::filesystem::path& path, int names);

}  // namespace arbalest::jobs
