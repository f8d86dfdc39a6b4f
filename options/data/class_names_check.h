// Checks names of classes, which a job or a file of its dataset gives.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <string>
#include <vector>

namespace arbalest::jobs {

struct NameProblem {
  std::size_t place = 0;  // number of the class
  std::string text;
};

// Problems of single names: empty ones, control characters, bytes that are not UTF-8, and repetitions.
std::vector<NameProblem> class_name_problems(std::span<const std::string> names);

// "has 3 names for 2 classes; ...": what has them is up to the caller. "" unless the numbers differ.
std::string class_count_problem(std::size_t names, std::int64_t classes);

}  // namespace arbalest::jobs
